"""Class and file names may hold anything: no terminal obeys them, no table breaks over them."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from pren.foundation.files import from_cell

pytestmark = pytest.mark.slow

# In the order of the class table; the last three are unseen, so they stand in the predictions.
NAMES = [
    "[red]seen[red]",
    "=1+1",
    "[bold]",
    "\ufeffa\u2066b",
    "\u202eright to left",
    "\u202dleft to right",
    '[link=x]"quoted", with\xadblanks[link]',
    "@SUM(A1), \u200b[bold]",
]


def shown(name):
    """How a name may appear: what cannot be printed as an escape, everything else literally."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


@pytest.fixture
def run(good, data, small):
    """A run over hostile names; all it printed."""

    def fit(names=NAMES, method="pren", setting="gzsl"):
        arguments = small if method == "pren" else ()
        name = data(setting=setting, class_names=np.array(names))
        return good("fit", name, "--method", method, "--setting", setting, *arguments, "--out", "run")

    return fit


def table(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


class TestFiles:
    def test_tables_come_back(self, good, run, arrays):
        run()
        predictions = table("run/predictions.csv")
        assert len(predictions) == 1 + 48
        assert len({len(row) for row in predictions}) == 1
        columns = [place for place, name in enumerate(predictions[0]) if name.startswith("class")]
        assert len(columns) == 2
        assert {from_cell(row[place]) for row in predictions[1:] for place in columns} <= set(NAMES)
        pseudo = table("run/pseudo_labels.csv")
        assert {from_cell(row[1]) for row in pseudo[1:]} <= set(NAMES)
        np.save("new.npy", arrays()["pool"])
        good("predict", "run", "new.npy", "--out", "labels.csv", "--top", "8", "--among", "all")
        labels = table("labels.csv")
        assert len(labels) == 1 + 18
        columns = [place for place, name in enumerate(labels[0]) if name.startswith("class")]
        for row in labels[1:]:
            assert sorted(from_cell(row[place]) for place in columns) == sorted(NAMES)

    @pytest.mark.parametrize("name", ["a,b", '"', '""', "'", "'=1", "a;b", "\ufeff", "é", "n" * 255])
    def test_any_name_comes_back(self, run, name):
        names = [*NAMES[:-1], name]
        run(names, "eszsl", "zsl")
        rows = table("run/predictions.csv")
        assert [row[0] for row in rows] == ["input", *map(str, range(18))]
        assert {from_cell(row[1]) for row in rows[1:]} <= set(names[-3:])
        metrics = json.loads(Path("run/metrics.json").read_text(encoding="utf-8"))
        assert [row["name"] for row in metrics["per_class"]] == names[-3:]

    @pytest.mark.parametrize(
        "name",
        [
            "\x1b[31mred",
            "a\nb",
            "a\rb",
            "a\tb",
            "\x9b31m",
            "\x07",
            "\x85",
            "\u2028",
            "\ud800",
            " a",
            "a/b",
            "a\\b",
            "..",
            "../../../x",
            "n" * 10_000,
        ],
        ids=ascii,
    )
    def test_what_no_folder_could_be_called_is_refused(self, bad, data, small, name):
        """As the names of folders are, in photographs of one's own; a lone surrogate cannot even be written."""
        message = bad("fit", data(class_names=np.array([*NAMES[:-1], name])), *small, "--out", "run")
        assert message.says("class-name 7")
        assert message.message.isprintable()
        assert len(message.message) < 300
        assert not Path("run").exists()

    def test_files_of_hostile_names(self, good, data, arrays, small):
        folder = "[red]\x1b[31m, 'my' run"
        out = good("fit", data(file="[b]\x1b[1mdata.npz"), *small, "--out", folder).out
        assert "\x1b" not in out
        assert f"Labels: {shown(folder)}/predictions.csv (18 inputs)" in out
        assert f"PrEN on {shown('[b]' + chr(27) + '[1mdata.npz')}" in out
        assert "finished" in good("fit", "--resume", folder).out
        np.save("new.npy", arrays()["pool"])
        out = good("predict", folder, "new.npy", "--out", "[i]\x1b.csv").out
        assert out == f"18 predictions are in {shown('[i]' + chr(27) + '.csv')}.\n"
        assert Path("[i]\x1b.csv").is_file()


class TestTerminal:
    @pytest.mark.parametrize("colours", [False, True])
    def test_no_terminal_obeys(self, good, run, monkeypatch, colours):
        if colours:
            monkeypatch.setenv("FORCE_COLOR", "1")
        results = [run(), good("show", "run"), good("evaluate", "run", "--confused", "100")]
        for result in results:
            for text in (result.out, result.err):
                for hostile in ("\x1b]", "\x9b", "\x07", "\u202d", "\u202e", "\u2066", "\u200b", "\ufeff"):
                    assert hostile not in text
                if not colours:
                    assert "\x1b" not in text

    def test_names_are_shown_as_they_are(self, good, run):
        run()
        lines = good("evaluate", "run").out.splitlines()
        for line, name in zip(lines[4:12], NAMES, strict=True):
            assert line.startswith(f"{shown(name)}  ")

    @pytest.mark.parametrize("name", [":smile:", ":warning:", "[red]", "[@click=x]y"])
    def test_this_name_too(self, good, run, name):
        run([*NAMES[:-1], name], "eszsl")
        assert good("evaluate", "run").out.splitlines()[11].startswith(f"{name}  ")

    def test_json_is_plain_text(self, good, run):
        run()
        out = good("evaluate", "run", "--json").out
        assert "\x1b" not in out
        assert [row["name"] for row in json.loads(out)["per_class"]] == NAMES

    def test_messages_are_one_safe_line(self, bad, data):
        for name in ("\x1b[31mred", "[red]", "a\nb"):
            message = bad("fit", data(labels=np.array([name] * 25)), "--out", "run")
            assert "\x1b" not in message.message
            assert message.says("label-unknown")
        assert bad("fit", data(labels=np.array(["[red]"] * 25)), "--out", "run").says("label-unknown")
        assert bad("fit", "nowhere[red]\x1b.npz", "--out", "run").says("file-missing x1b.npz")
        assert bad("fit", data(), "--method", "[red]").says("unknown-name")
        assert bad("fit", data(), "--set", "[/]=3").says("param-value")

    def test_warnings_are_safe_too(self, good, data, arrays):
        signatures = arrays()["signatures"].copy()
        signatures[5] = signatures[4]
        result = good(
            "fit", data(signatures=signatures, class_names=np.array(NAMES)), "--method", "eszsl", "--out", "run"
        )
        assert "the same signature" in " ".join(result.err.split())
        assert not {"\u202d", "\u202e"} & set(result.err)


FILE = "\x1b[31;1mevil\x1b]0;owned\x07\u202e\nError: forged.jpg"


class TestFileNames:
    """What a photograph is called is shown by warnings, too."""

    @pytest.fixture
    def folder(self, photographs):
        (photographs / "unlabelled" / FILE).write_bytes(b"not an image")
        return photographs

    def check(self, result):
        for text in (result.out, result.err):
            assert not {"\x1b", "\x07", "\u202e"} & set(text)
            assert not any(line.strip().startswith("Error: forged") for line in text.splitlines())
        assert "evil" in result.out + result.err

    def test_fit_and_predict(self, good, folder, tiny_weights):
        vision = ("--backbone", "test_resnet", "--weights", tiny_weights, "--cache", "cache")
        self.check(good("fit", folder, "--method", "eszsl", "--rehearsals", "0", "--out", "run", *vision))
        self.check(good("predict", "run", folder / "unlabelled", "--cache", "cache"))

    def test_data_check(self, good, folder):
        self.check(good("data", "check", folder))

    def test_what_is_missing_is_one_line(self, pren):
        assert "Error: Missing argument 'kind'. Choose from: methods, datasets, backbones" in pren("list").err

    def test_arguments(self, pren):
        for arguments in (["fit", f"--{FILE}"], ["fit", "numbers", FILE], [FILE], ["fit", "--devices", FILE]):
            result = pren(*arguments)
            assert result.code == 2
            assert not {"\x1b", "\x07", "\u202e"} & set(result.err)
            assert not any(line.startswith("Error: forged") for line in result.err.splitlines())


def test_the_names_can_do_harm():
    """A naive table and a naive terminal would both fall for them."""
    naive = "\n".join(f"0,{name}" for name in NAMES)
    assert {len(row) for row in csv.reader(io.StringIO(naive))} != {2}
    assert not all(name.isprintable() for name in NAMES)
