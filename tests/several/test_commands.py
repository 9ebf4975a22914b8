"""``pren fit`` in several processes: on this machine, and on two "machines" on loopback."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from run_folders import run_folder

from pren.cli import __main__ as command_line
from pren.store.config import RunConfig
from pren.store.folder import RunFolder
from tests.several.test_team import free_port

PREN = (sys.executable, "-m", "pren.cli")
SETTINGS = {"heads": 5, "dim": 4, "rounds": 60, "initial_batches": 20, "batches": 20, "batch_size": 16, "hidden": [16]}
FIT = ("fit", "data.npz", "--method=pren", *(f"--set={key}={value}" for key, value in SETTINGS.items()), "--out", "run")
TOLERANCE = 1e-5
pytestmark = pytest.mark.slow


@pytest.fixture
def folder(arrays, tmp_path):
    """A folder with data in it."""
    np.savez(tmp_path / "data.npz", **arrays())
    return tmp_path


@pytest.fixture
def start(folder):
    """Start a command; whatever is left of it is killed at the end."""
    started = []

    def run(*arguments, command=PREN, inside=folder):
        started.append(
            subprocess.Popen(
                [*command, *arguments],
                cwd=inside,
                env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=heed_ctrl_c,
            )
        )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def heed_ctrl_c():
    """Where the tests run in the background of a shell, they and their children would ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def workers_of(launcher):
    """The processes that a launcher has started."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
    if not children.exists():
        pytest.skip("this system does not list the children of a process")
    return [int(pid) for pid in children.read_text().split()]


def alive(pid):
    state = Path(f"/proc/{pid}/stat")
    try:
        return state.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def read_until(process, words):
    said = ""
    while words not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


def ended(process):
    out, err = process.communicate(timeout=150)
    return process.returncode, out, err


@pytest.fixture(scope="module")
def alone(arrays, tmp_path_factory):
    """The run of one process that nobody disturbed."""
    folder = tmp_path_factory.mktemp("alone")
    np.savez(folder / "data.npz", **arrays())
    return run_folder(RunConfig(data=str(folder / "data.npz"), method="pren", params=SETTINGS), folder / "run")


def check_same(run, alone):
    """Every round had the same pseudo-labels, and the models agree."""
    assert [row["changed"] for row in run.history()] == [row["changed"] for row in alone.history()]
    assert (run.path / "pseudo_labels.csv").read_bytes() == (alone.path / "pseudo_labels.csv").read_bytes()
    weights = run.model().network_.state_dict()
    for name, value in alone.model().network_.state_dict().items():
        assert (value.double() - weights[name].double()).abs().max() < TOLERANCE


def test_a_worker_that_dies_is_named_and_one_process_goes_on(start, folder, alone):
    launcher = start(*FIT, "--devices", "2")
    said = read_until(launcher, "round  3/60")
    victim = workers_of(launcher)[1]
    os.kill(victim, signal.SIGKILL)
    code, out, err = ended(launcher)
    assert (code, out) == (2, "")
    assert said.count("PrEN on data.npz") == 1  # one of them speaks
    assert f"Process 1 of 2 (pid {victim} on " in err
    assert "was ended by SIGKILL" in err
    assert "go on with --resume, with any number of processes" in err
    assert "Traceback" not in said + err
    done = len(RunFolder.open(folder / "run").history())
    assert 4 <= done < 61
    check_same(run_folder(RunFolder.open(folder / "run").config(), folder / "run", resume=True), alone)


def interrupt(done, method):
    raise KeyboardInterrupt


def test_two_machines_go_on_and_lose_one(start, folder, alone):
    """The second one has the data, but neither the run folder nor the configuration."""
    config = RunConfig(data=str(folder / "data.npz"), method="pren", params=SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        run_folder(config, folder / "run", on_round=interrupt)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(folder / "data.npz", elsewhere)
    where = ("--nodes", "2", "--main-address", f"127.0.0.1:{free_port()}", "--node-rank")
    nodes = [
        start("fit", "--resume", "run", *where, "0"),
        start("fit", "data.npz", "--out", "run", *where, "1", inside=elsewhere),
    ]
    read_until(nodes[0], "round  2/60")
    os.kill(workers_of(nodes[1])[0], signal.SIGKILL)
    for rank, (code, out, err) in enumerate(map(ended, nodes)):
        assert (code, out) == (2, "")
        assert ("Process 1 of 2 (pid" in err) is (rank == 1)
        assert ("Another process of this run has ended" in err) is (rank == 0)
        assert "Traceback" not in err
    assert [path.name for path in elsewhere.iterdir()] == ["data.npz"]
    check_same(run_folder(config, folder / "run", resume=True), alone)


def test_ctrl_c_reaches_everyone_once(start):
    launcher = start(*FIT, "--devices", "2")
    said = read_until(launcher, "round  1/60")
    workers = workers_of(launcher)
    launcher.send_signal(signal.SIGINT)
    code, out, err = ended(launcher)
    assert (code, out) == (130, "")
    assert (said + err).count("Interrupted. The model of the last finished round is kept") == 1
    assert "Traceback" not in said + err
    assert not any(map(alive, workers))


def test_no_worker_outlives_its_launcher(start, folder):
    launcher = start(*FIT, "--devices", "2")
    read_until(launcher, "round  1/60")
    workers = workers_of(launcher)
    assert len(workers) == 2
    launcher.kill()
    launcher.wait()
    deadline = time.monotonic() + 100
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, workers))
    assert RunFolder.open(folder / "run").history()


class TestRefused:
    """What every machine can tell by itself is told at once."""

    @pytest.mark.parametrize(
        ("arguments", "kind"),
        [
            (["--nodes", "2"], "option-missing"),
            (["--main-address", "here:1"], "option-conflict"),
            (["--nodes", "2", "--node-rank", "2", "--main-address", "here:1"], "option-value"),
            (["--node-rank", "1"], "option-value"),
            *(
                (["--nodes", "2", "--main-address", address], "option-value")
                for address in ("here", ":1", "here:", "here:x", "here:0", "here:99999", "")
            ),
        ],
    )
    def test_an_address_that_is_none(self, arguments, kind, monkeypatch, capsys):
        monkeypatch.setattr(sys, "argv", ["pren", *FIT, *arguments])
        with pytest.raises(SystemExit) as exit_:
            command_line.main()
        assert exit_.value.code == 2
        assert capsys.readouterr().err.startswith(f"Error [{kind}]: ")


def test_a_backbone_learns_in_a_team(start, folder, monkeypatch, capsys):
    """Two processes share every batch and every photograph; one keeps what was learned, and one process finds it."""
    for number in range(12):
        to = folder / "birds" / ("unlabelled" if number >= 10 else f"images/{number % 5}")
        to.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(to / f"{number}.png")
    (folder / "birds" / "unlabelled" / "bad.png").write_bytes(b"no picture")
    rows = [f"{name},{name},{name**2},{7 - name}" for name in range(7)]
    (folder / "birds" / "signatures.csv").write_text("\n".join(["class,a,b,c", *rows, ""]))
    how = ("--backbone", "test_resnet", "--weights", "random", "--finetune")
    how += ("--finetune-epochs", "2", "--finetune-strength", "0.5")
    extract = ("extract", "birds", *how, "--cache", "cache", "--json")
    code, out, err = ended(start(*extract, "--devices", "2"))
    assert code == 0, err
    first = json.loads(out)
    assert first["images"] == 12
    assert "epoch 2 of 2" in err
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["pren", *extract])
    with pytest.raises(SystemExit, match="0"):
        command_line.main()
    again = capsys.readouterr()
    assert "epoch" not in again.err
    assert json.loads(again.out)["facts"] == first["facts"]
    assert len(list((folder / "cache" / "tails").iterdir())) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "rank"),
    [(["--version"], 0, None), (["--version"], 0, "1"), (["fit", "x", "--node-rank=1"], 2, "1")],
)
def test_nothing_is_taken_down_at_the_end_of_one_of_several(arguments, code, rank):
    """The others may be gone: torch would abort over it, even after a run that has succeeded."""
    script = (
        "import atexit, sys; atexit.register(print, 'taken down'); "
        f"sys.argv = ['pren', *{arguments}]; from pren.cli.__main__ import main; main()"
    )
    environment = {**os.environ, **({} if rank is None else {"LOCAL_RANK": rank})}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == code
    assert ("pren 0" in done.stdout) is (code == 0)
    assert ("taken down" in done.stdout) is (rank is None)
