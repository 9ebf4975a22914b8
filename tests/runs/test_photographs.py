"""Runs on image files: trained end to end, or on the features of a frozen backbone."""

import numpy as np
import pytest
import torch
from PIL import Image
from refusals import refused
from run_folders import run_folder
from safetensors.torch import save_file

from pren.images.extraction import Extractor
from pren.images.files import ImageFiles
from pren.images.torchvision_operators import import_timm
from pren.problem import Answers, ClassTable, Problem
from pren.runs.reopening import evaluate_run
from pren.store.config import RunConfig
from pren.store.folder import RunFolder

pytestmark = pytest.mark.slow

COLOURS = np.array([[200, 30, 30], [30, 200, 30], [30, 30, 200], [200, 200, 30]])
LABELS, IN_POOL = np.repeat([0, 1], 4), np.repeat([2, 3], 3)
SMALL = {"heads": 3, "hidden": (8,), "rounds": 2, "initial_batches": 2, "batches": 2, "batch_size": 4}


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """Pictures in four colours as what every configuration loads; returns their folder."""
    folder, rng = tmp_path / "pictures", np.random.default_rng(0)
    folder.mkdir()
    names = [f"{place:02d}.png" for place in range(14)]
    for name, label in zip(names, [*LABELS, *IN_POOL], strict=True):
        noise = rng.integers(-30, 30, (20, 26, 3))
        Image.fromarray((COLOURS[label] + noise).clip(0, 255).astype(np.uint8)).save(folder / name)

    def load_data(self):
        classes = ClassTable.build(("d", "a", "c", "b"), COLOURS / 255, np.array([True, True, False, False]))
        problem = Problem(ImageFiles(folder, names[:8]), LABELS, ImageFiles(folder, names[8:]), classes)
        return problem, Answers(IN_POOL)

    monkeypatch.setattr(RunConfig, "load_data", load_data)
    return folder


@pytest.fixture
def configuration(tmp_path):
    """A run end to end, or with a frozen backbone."""
    weights = tmp_path / "tiny.safetensors"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        save_file(import_timm().create_model("test_resnet").state_dict(), weights)

    def build(frozen, **params):
        backbone = {"backbone": "test_resnet", "weights": str(weights)}
        if frozen:
            return RunConfig(
                data="pictures.npz",
                method="pren",
                params=SMALL | params,
                extractor=Extractor(**backbone),
                cache=str(tmp_path / "cache"),
            )
        return RunConfig(data="pictures.npz", method="pren", params=SMALL | backbone | params)

    return build


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize("frozen", [False, True], ids=["end to end", "frozen"])
def test_a_run_is_finished_and_resumed_to_the_same_bytes(tmp_path, configuration, interrupted, outcome, frozen):
    params = {} if frozen else {"augmentation": "flip-crop"}
    config = configuration(frozen, **params)
    progress = []
    run = run_folder(config, tmp_path / "whole", on_extract=lambda *seen: progress.append(seen))
    assert run.finished()
    assert [done for done, _, _ in progress] == ([8, 6] if frozen else [])
    assert evaluate_run(run) == run.figures()
    interrupted(config, tmp_path / "stopped", 1)
    run_folder(config, tmp_path / "stopped", resume=True)
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")
    model = RunFolder.open(tmp_path / "whole").model()
    assert (model.extractor_ is not None) == frozen


@pytest.mark.parametrize("frozen", [False, True], ids=["end to end", "frozen"])
def test_bad_files_are_left_out_of_a_run(tmp_path, pictures, configuration, caplog, frozen):
    (pictures / "03.png").write_bytes(b"")
    (pictures / "09.png").write_bytes(b"no picture")
    run = run_folder(configuration(frozen), tmp_path / "run")
    assert "2 of 14 photographs cannot be read and are left out" in caplog.text
    assert run.finished()
    (pictures / "04.png").write_bytes((pictures / "05.png").read_bytes())
    with refused("data-changed"):
        run_folder(configuration(frozen), tmp_path / "run", resume=True)
