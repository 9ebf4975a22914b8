"""A folder of one's own photographs: read as it is meant, and everything that is wrong named with file and line."""

import csv
import io
import os
import tempfile
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image
from refusals import refused

from pren.data import load
from pren.data.describe import ENCODERS, register_encoder, sentences
from pren.data.folder import findings as findings_module
from pren.data.folder.check import report_folder
from pren.data.folder.findings import Finding, Findings
from pren.data.folder.load import load_folder, read_folder
from pren.foundation.errors import PrenError
from pren.problem import UNKNOWN

SIGNATURES = "class,striped,hooves,swims\nhorse,0,1,0\ntiger,1,0,0.5\nzebra,1,1,0\nseal,0,0,1\n"


def photograph(path, colour):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (6, 5), colour).save(path)


def fill(folder):
    """Two seen classes, two unseen ones, and no mistake."""
    for number in range(3):
        photograph(folder / f"images/horse/{number}.jpg", (200, 20 * number, 0))
        photograph(folder / f"images/tiger/deep/er/{number}.PNG", (0, 20 * number, 200))
    for number in range(8):
        photograph(folder / f"unlabelled/{'zebra' if number % 2 else 'more/seal'}-{number}.png", (90, 20 * number, 90))
    (folder / "signatures.csv").write_text(SIGNATURES)
    (folder / "answers.csv").write_text("file,class\nzebra-1.png,zebra\nmore/seal-0.png,seal\nzebra-3.png,\n")
    return folder


@pytest.fixture
def folder(tmp_path):
    return fill(tmp_path / "mydata")


def found(folder, **options):
    """What is wrong, as (severity, file, line, message)."""
    return [(f.severity, f.file, f.line, f.message) for f in report_folder(folder, **options).problems]


def the_one(folder, **options):
    (only,) = found(folder, **options)
    return only


class TestLoading:
    def test_everything_is_where_it_belongs(self, folder):
        assert found(folder) == []
        problem, answers = load_folder(folder)
        names = problem.classes.names
        assert names == ("horse", "tiger", "zebra", "seal")
        assert problem.classes.seen.tolist() == [True, True, False, False]
        assert np.allclose(np.linalg.norm(problem.classes.signatures, axis=1), 1)
        assert problem.train.sample_shape == (3, 224, 224)
        assert problem.setting == "zsl"
        assert len(problem.train) == 6
        red, blue = problem.train[np.arange(6)][:, [0, 2]].mean(dim=(2, 3)).T
        assert (red > blue).tolist() == [names[label] == "horse" for label in problem.labels]
        assert sorted(answers.names) == sorted(
            path.relative_to(folder / "unlabelled").as_posix() for path in (folder / "unlabelled").rglob("*.png")
        )
        known = {file: label for file, label in zip(answers.names, answers.labels, strict=True) if label != UNKNOWN}
        assert known == {"zebra-1.png": 2, "more/seal-0.png": 3}

    def test_names_are_those_of_the_images_in_the_pool(self, folder):
        problem, answers = load_folder(folder)
        for place, name in enumerate(answers.names):
            expected = int(name.removesuffix(".png")[-1]) * 20
            assert problem.pool[np.array([place])][0, 1].mean().item() * 255 == pytest.approx(expected, abs=1)

    def test_the_order_of_the_pool_is_shuffled_and_always_the_same(self, folder):
        problem, answers = load_folder(folder)
        again, same = load_folder(folder)
        assert same.names == answers.names != tuple(sorted(answers.names))
        assert again.fingerprint() == problem.fingerprint()

    def test_answers_have_no_part_in_the_problem(self, folder):
        problem, _ = load_folder(folder)
        (folder / "answers.csv").unlink()
        without, answers = load_folder(folder)
        assert without.fingerprint() == problem.fingerprint()
        assert without.source == problem.source
        assert (answers.labels == UNKNOWN).all()
        assert len(answers.names) == 8

    def test_in_gzsl_answers_for_seen_classes_count(self, folder, caplog):
        (folder / "answers.csv").write_text("file,class\nzebra-1.png,horse\nzebra-3.png,tiger\nzebra-5.png,zebra\n")
        _, answers = load_folder(folder, setting="gzsl")
        assert sorted(answers.labels[answers.labels != UNKNOWN]) == [0, 1, 2]
        assert not caplog.messages
        assert not found(folder, setting="gzsl")
        _, answers = load_folder(folder)
        assert answers.labels[answers.labels != UNKNOWN].tolist() == [2]
        assert "answers.csv, line 2: 'horse' is a seen class (lines like this: 2)" in caplog.text

    def test_names_are_compared_in_one_unicode_form(self, folder):
        composed, decomposed = "\xe9lan", "e\u0301lan"
        photograph(folder / f"images/{decomposed}/1.png", (1, 2, 3))
        photograph(folder / f"unlabelled/{decomposed}.png", (3, 2, 1))
        (folder / "signatures.csv").write_text(SIGNATURES + f"{composed},1,1,1\n", encoding="utf-8")
        (folder / "answers.csv").write_text(f"file,class\n{composed}.png,zebra\n", encoding="utf-8")
        assert found(folder) == []
        problem, answers = load_folder(folder)
        assert problem.classes.names[-1] == composed
        assert answers.labels[answers.names.index(f"{decomposed}.png")] == 2

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: "\ufeff" + text,
            lambda text: text.replace("\n", "\r\n"),
            lambda text: text.replace("\n", "\r"),
            lambda text: text.replace("\n", "\n\n"),
            lambda text: text.replace("horse,0,1,0", '"horse", 0,1e0,"0"'),
            lambda text: text.replace("class,striped,", "Class, striped ,"),
        ],
    )
    def test_ways_to_write_a_table(self, folder, change):
        before = load_folder(folder)[0].fingerprint()
        (folder / "signatures.csv").write_bytes(change(SIGNATURES).encode())
        assert load_folder(folder)[0].fingerprint() == before

    def test_images_are_not_decoded(self, folder):
        (folder / "images/horse/broken.jpg").write_bytes(b"no image")
        assert len(load_folder(folder)[0].train) == 7

    def test_errors_name_the_first_problems_and_the_command_for_all(self, folder):
        rows = "".join(f"class {number},1,x,1\n" for number in range(5))
        (folder / "signatures.csv").write_text(SIGNATURES + rows)
        with pytest.raises(PrenError) as error:
            load_folder(folder)
        said = str(error.value)
        assert "signatures.csv, line 6: column 'hooves' is 'x', not a finite number." in said
        assert "line 8" in said
        assert "line 9" not in said
        assert f"(5 problems; 'pren data check {folder}' lists all.)" in said

    def test_a_folder_is_found_by_its_path(self, folder, monkeypatch):
        expected = load_folder(folder)[0].fingerprint()
        monkeypatch.chdir(folder.parent)
        for name in ("mydata", "./mydata", folder, "mydata/"):
            assert load(name)[0].fingerprint() == expected
        monkeypatch.chdir(folder)
        assert load(".")[0].fingerprint() == expected

    @pytest.mark.parametrize(
        ("arguments", "refusal"),
        [
            ({"name": "mydata", "split": "val"}, "split-unknown val"),
            ({"name": "mydata", "root": "."}, "root-unused"),
            ({"name": "mydata", "fold": 1}, "data-option-unknown fold"),
            ({"name": "./nowhere"}, "file-missing"),
            ({"name": "mydata/signatures.csv"}, "data-unknown signatures.csv"),
            ({"name": "nowhere"}, "unknown-name nowhere"),
            ({"name": "x" * 5000}, "unknown-name"),
            ({"name": "/" + "x" * 5000}, "file-missing"),
            ({"name": "a\0b"}, "unknown-name"),
        ],
    )
    def test_mistakes_with_the_name(self, folder, monkeypatch, arguments, refusal):
        monkeypatch.chdir(folder.parent)
        with refused(refusal):
            load(**arguments)


class TestSignatures:
    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ("otter,1,0", "it has 3 fields, but the header (line 1) has 4."),
            ("otter,1,0,1,1", "it has 5 fields, but the header (line 1) has 4."),
            ("otter", "it has 1 field, but the header (line 1) has 4."),
            (",1,0,1", "the class has no name."),
            ("  ,1,0,1", "the class has no name."),
            (" otter,1,0,1", "class ' otter' begins or ends with a space"),
            ("horse,1,0,1", "class 'horse' is already in line 2: give every class one row."),
            ("otter,?,, ", "it has no numbers"),
            ("otter,1,many,1", "column 'hooves' is 'many', not a finite number."),
            ('otter,1,"0,5",1', "column 'hooves' is '0,5', not a finite number."),
            ("otter,1,1_0,1", "column 'hooves' is '1_0', not a finite number."),
            ("otter,1,nan,1", "column 'hooves' is 'nan', not a finite number."),
            ("otter,1,-inf,1", "column 'hooves' is '-inf', not a finite number."),
            ("otter,1,1e999,1", "column 'hooves' is '1e999', not a finite number."),
            ("otter,0,0.0,-0", "the signature is all zeros"),
            ("sea/otter,1,0,1", "class 'sea/otter' is not a valid folder name"),
            ("sea\\otter,1,0,1", "class 'sea\\\\otter' is not a valid folder name"),
            ("..,1,0,1", "class '..' is not a valid folder name"),
            ("\x1b[31motter,1,0,1", "class '\\x1b[31motter' begins or ends with a space or has a control character"),
            (f"{'otter' * 60},1,0,1", "at most 255 bytes"),
            ('"otter"s,1,0,1', "it is not valid CSV: ',' expected after '\"'."),
            ('"otter,1,0,1', "it is not valid CSV: a quotation mark is never closed."),
            (f"otter,1,0,{'1' * 200_000}", "it is not valid CSV: field larger than field limit (131072)."),
        ],
    )
    def test_rows(self, folder, row, message):
        (folder / "signatures.csv").write_text(f"{SIGNATURES}{row}\n")
        severity, file, line, said = the_one(folder)
        assert (severity, file, line) == ("error", "signatures.csv", 6)
        assert message in said
        with refused("folder-unusable signatures.csv 6"):
            load_folder(folder)

    def test_lines_are_counted_where_rows_begin(self, folder):
        (folder / "signatures.csv").write_text(f'{SIGNATURES}\n"ot\nter",1,1,1\nlynx,x,1,1\n')
        assert [line for _, _, line, _ in found(folder)] == [7, 9]

    @pytest.mark.parametrize(
        ("content", "line", "message"),
        [
            (b"", None, "it is empty: its first line must be class,"),
            (b"\n\n", None, "it is empty"),
            (b"class,striped\n", None, "it has no class"),
            (b'class,"striped"s\nhorse,1\n', 1, "it is not valid CSV"),
            (b"class\nhorse\n", 1, "there is no attribute"),
            (b"\nname,striped\nhorse,1\n", 2, "the first field must be 'class', not 'name'"),
            (b"class;striped;hooves\nhorse;1;0\n", 1, "separated by semicolons or tabs"),
            (b"class\tstriped\nhorse\t1\n", 1, "separated by semicolons or tabs"),
            (SIGNATURES.encode() + b"otter,1,\xe9,1\n", 6, "it is not UTF-8 text"),
            (SIGNATURES.encode("utf-16"), 1, "it is not UTF-8 text"),
            (SIGNATURES.encode("utf-16-le"), 1, "it is not UTF-8 text"),
            (SIGNATURES.encode() + b"ot\0ter,1,1,1\n", 6, "it is not UTF-8 text"),
            (SIGNATURES.replace("hooves", "striped").encode(), 1, "columns 2 and 3 are both named 'striped'"),
            (SIGNATURES.replace("hooves", " ").encode(), 1, "the attribute in column 3 has no name"),
        ],
    )
    def test_whole_files(self, folder, content, line, message):
        (folder / "signatures.csv").write_bytes(content)
        (folder / "answers.csv").unlink()
        said = [(file, at, text) for _, file, at, text in found(folder) if not file.startswith("images/")]
        assert len(said) == 1
        assert said[0][:2] == ("signatures.csv", line)
        assert message in said[0][2]

    @pytest.mark.parametrize("file", ["descriptions.csv", "classes.csv", "answers.csv", "labels.csv"])
    def test_semicolons_are_named_in_every_table(self, folder, file):
        (folder / file).write_text("file;class;\na;b;\n")
        options = {"descriptions.csv": "descriptions", "classes.csv": "names"}.get(file)
        if options is not None:
            (folder / "signatures.csv").unlink()
        said = {at: text for _, at, _, text in found(folder, signatures=options) if at == file}
        assert "semicolons" in said[file]
        assert "commas" in said[file]

    def test_no_unseen_class(self, folder):
        (folder / "signatures.csv").write_text("".join(SIGNATURES.splitlines(keepends=True)[:3]))
        (folder / "answers.csv").unlink()
        severity, file, line, message = the_one(folder)
        assert (severity, file, line) == ("error", "signatures.csv", None)
        assert "every class has a folder in images" in message

    def test_missing(self, folder):
        (folder / "signatures.csv").unlink()
        assert "a row for every class, seen and unseen" in the_one(folder)[3]

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("name", ["signatures.csv", "answers.csv"])
    def test_no_ordinary_file(self, folder, name):
        (folder / name).rename(folder.parent / "elsewhere")
        (folder / name).symlink_to(folder.parent / "elsewhere")
        assert the_one(folder) == ("error", name, None, "it is not an ordinary file.")
        (folder / name).unlink()
        os.mkfifo(folder / name)
        assert the_one(folder)[1:] == (name, None, "it is not an ordinary file.")

    def test_a_file_too_large(self, folder):
        with (folder / "signatures.csv").open("r+b") as file:
            file.truncate((1 << 26) + 1)
        assert "it is larger than" in the_one(folder)[3]

    def test_very_many_attributes_are_a_warning(self, folder):
        wide = "class," + ",".join(map(str, range(10_001)))
        names = ("horse", "tiger", "zebra", "seal")
        rows = [f"{name}{',0' * place},1{',0' * (10_000 - place)}" for place, name in enumerate(names)]
        (folder / "signatures.csv").write_text("\n".join([wide, *rows]))
        assert the_one(folder)[0] == "warning"
        assert "it has 10001 attributes: methods that pair them" in the_one(folder)[3]

    def test_classes_that_nothing_tells_apart(self, folder):
        (folder / "signatures.csv").write_text(f"{SIGNATURES}pony,-0,1.0,0\n")
        severity, file, line, message = the_one(folder)
        assert (severity, file, line) == ("warning", "signatures.csv", 6)
        assert "'pony' has the same signature as 'horse'" in message

    def test_there_is_an_end_to_the_list(self, folder, monkeypatch):
        monkeypatch.setattr(findings_module, "MOST_PER_FILE", 10)
        (folder / "signatures.csv").write_text(SIGNATURES + "otter,x,y,z\n" * 20)
        said = found(folder)
        assert len(said) == 11
        assert sum("it has more errors: fix these first." in message for *_, message in said) == 1


DESCRIPTIONS = "class,description\nhorse,runs on hooves\ntiger,runs striped\nzebra,striped hooves\nseal,it swims\n"


class TestDescriptions:
    @pytest.fixture
    def folder(self, folder):
        (folder / "signatures.csv").rename(folder / "numbers.txt")
        (folder / "descriptions.csv").write_text(DESCRIPTIONS)
        return folder

    @pytest.fixture(autouse=True)
    def words(self, monkeypatch):
        """Counts some words."""
        monkeypatch.setattr(ENCODERS, "_entries", {})
        known = ("runs", "striped", "hooves", "swims")
        register_encoder("words")(lambda texts: [[text.split().count(word) for word in known] for text in texts])

    def test_an_encoder_makes_signatures_of_words(self, folder):
        problem, answers = load(folder, encoder="words")
        expected = np.array([[1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]])
        assert problem.classes.names == ("horse", "tiger", "zebra", "seal")
        np.testing.assert_allclose(
            problem.classes.signatures, expected / np.linalg.norm(expected, axis=1, keepdims=True)
        )
        assert set(problem.source["files"]) == {"descriptions.csv"}
        assert problem.source["signatures"].items() >= {
            "kind": "text", "encoder": "words", "file": "descriptions.csv", "width": 4,
        }.items()  # fmt: skip
        assert (answers.labels != UNKNOWN).sum() == 2

    def test_an_encoder_that_is_not_there(self, folder, monkeypatch):
        def missing(package):
            raise PackageNotFoundError

        monkeypatch.setattr(ENCODERS, "_entries", {"minilm": sentences.PackagedEncoder()})
        monkeypatch.setattr(sentences, "version", missing)
        with refused("extra-missing signatures.csv"):
            load_folder(folder)
        severity, file, _, said = the_one(folder)
        assert (severity, file) == ("warning", "descriptions.csv")
        assert "'.[words]'" in said
        with refused("unknown-name words"):
            load_folder(folder, encoder="words")

    def test_signatures_may_be_named(self, folder):
        with refused("signatures-unknown attributes /signatures.csv"):
            load(folder, signatures="attributes")
        (folder / "numbers.txt").rename(folder / "signatures.csv")
        assert load(folder, signatures="attributes")[0].source["signatures"]["kind"] == "attributes"
        named, _ = load(folder, signatures="attributes,descriptions", encoder="words")
        assert named.fingerprint() == load(folder, encoder="words")[0].fingerprint()
        assert report_folder(folder, signatures="descriptions").attributes == 0
        assert report_folder(folder, signatures="attributes").attributes == 3
        for options, refusal in (
            ({"signatures": "attributes", "encoder": "words"}, "option-conflict words"),
            ({"signatures": "sentences"}, "signatures-unknown sentences signatures.csv"),
        ):
            with refused(refusal):
                load(folder, **options)

    def test_an_encoder_needs_words(self, folder):
        (folder / "numbers.txt").rename(folder / "signatures.csv")
        assert load_folder(folder, encoder="words")[0].source["signatures"]["kind"] == "combined"
        (folder / "descriptions.csv").unlink()
        with refused("folder-unusable descriptions.csv"):
            load_folder(folder, encoder="words")

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ("otter, ", "class 'otter' has no description."),
            ("otter", "it has 1 field, but the header (line 1) has 2."),
            (f"otter,{'so ' * 4000}", "the description of 'otter' has 11999 characters: use at most 10000."),
            ("sea/otter,swims", "class 'sea/otter' is not a valid folder name"),
        ],
    )
    def test_rows(self, folder, row, message):
        (folder / "descriptions.csv").write_text(f"{DESCRIPTIONS}{row}\n")
        severity, file, line, said = found(folder)[0]
        assert (severity, file, line) == ("error", "descriptions.csv", 6)
        assert message in said
        with refused("folder-unusable descriptions.csv 6"):
            load_folder(folder, encoder="words")

    def test_the_header(self, folder):
        (folder / "descriptions.csv").write_text("class,numbers\nhorse,1\n")
        assert found(folder)[0] == ("error", "descriptions.csv", 1, "the first line must be class,description.")

    def test_a_class_without_a_row_and_classes_with_the_same_words(self, folder):
        (folder / "descriptions.csv").write_text(DESCRIPTIONS.replace("horse,", "pony,") + "walrus,it swims\n")
        assert [(s, f, m) for s, f, _, m in found(folder) if "encoder" not in m] == [
            ("error", "images/horse", "class 'horse' has no row in descriptions.csv. Add one."),
            ("warning", "descriptions.csv", "'walrus' has the same description as 'seal': write how they differ."),
        ]


class TestImages:
    def test_a_class_folder_without_a_signature(self, folder):
        (folder / "images/horse").rename(folder / "images/hrose")
        assert the_one(folder)[1:] == (
            "images/hrose", None, "class 'hrose' has no row in signatures.csv. Did you mean 'horse'?",
        )  # fmt: skip
        (folder / "images/hrose").rename(folder / "images/\x1b[31m")
        assert the_one(folder)[3] == "class '\\x1b[31m' has no row in signatures.csv. Add one."

    def test_a_broken_row_is_still_a_row(self, folder):
        """It is not said again that the class of a broken row has none."""
        for row in ("horse,x,1,0", "horse,1", "horse,0,0,0"):
            (folder / "signatures.csv").write_text(SIGNATURES.replace("horse,0,1,0", row))
            assert the_one(folder)[1:3] == ("signatures.csv", 2)

    def test_a_class_folder_without_images(self, folder):
        (folder / "images/zebra").mkdir()
        (folder / "images/zebra/notes.txt").write_text("")
        severity, file, _, message = the_one(folder)
        assert (severity, file) == ("error", "images/zebra")
        assert "it has no photographs: add files that end in .png" in message

    def test_a_class_twice(self, folder):
        photograph(folder / "images/\xe9lan/1.png", (1, 2, 3))
        photograph(folder / "images/e\u0301lan/1.png", (1, 2, 4))
        (folder / "signatures.csv").write_text(SIGNATURES + "\xe9lan,1,1,1\n", encoding="utf-8")
        assert ": join the two folders" in the_one(folder)[3]

    def test_an_image_in_no_class_folder(self, folder):
        photograph(folder / "images/lost.png", (1, 2, 3))
        assert the_one(folder)[:3] == ("warning", "images/lost.png", None)
        assert len(load_folder(folder)[0].train) == 6

    @pytest.mark.parametrize(("part", "count"), [("images", 2), ("unlabelled", 3)])
    def test_a_folder_that_is_missing_or_empty(self, folder, part, count):
        (folder / part).rename(folder.parent / "elsewhere")
        said = found(folder)
        assert ("error", part, None, "this folder is missing.") in said
        if part == "unlabelled":
            assert len(said) == 1 + count  # every answer is for a file that is not there
        (folder / part).mkdir()
        assert [file for _, file, _, _ in found(folder)].count(part) == 1
        (folder / part).rmdir()
        (folder / part).symlink_to(folder.parent / "elsewhere")
        assert any(file == part and "a link that leads out" in message for _, file, _, message in found(folder))
        (folder / part).unlink()
        (folder / part).write_text("")
        assert ("error", part, None, "this is not a folder.") in found(folder)

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("part", ["images/horse", "unlabelled"])
    def test_what_is_no_image(self, folder, part):
        photograph(folder.parent / "secret.png", (9, 9, 9))
        photograph(folder.parent / "secrets" / "1.png", (9, 9, 9))
        (folder / part / "out.png").symlink_to(folder.parent / "secret.png")
        (folder / part / "dead.png").symlink_to("nowhere")
        (folder / part / "circle.png").symlink_to("circle.png")
        os.mkfifo(folder / part / "pipe.png")
        (folder / part / "zero.png").symlink_to("/dev/zero")
        (folder / part / "outer").symlink_to(folder.parent / "secrets")
        said = {file.removeprefix(f"{part}/"): (severity, message) for severity, file, _, message in found(folder)}
        assert {name: severity for name, (severity, _) in said.items()} == dict.fromkeys(
            ("out.png", "dead.png", "circle.png", "pipe.png", "zero.png", "outer"), "error"
        )
        assert "leads out of" in said["out.png"][1]
        assert "leads out of" in said["outer"][1]
        assert said["dead.png"][1] == "it is a dead link, not an image: remove it."
        assert "a pipe or a device" in said["pipe.png"][1]
        assert "a pipe or a device" in said["zero.png"][1]
        with refused("folder-unusable 6"):
            load_folder(folder)

    def test_links_to_folders_are_not_followed(self, folder):
        (folder / "images/zebra").symlink_to("horse")
        (folder / "images/horse/loop").symlink_to(folder)
        assert [(s, f) for s, f, _, _ in found(folder)] == [
            ("warning", "images/horse/loop"),
            ("warning", "images/zebra"),
        ]

    def test_photographs_that_lie_elsewhere_behind_links(self, folder):
        """Refused unless they are asked for; the refusal names the option."""
        before = load_folder(folder)[0].fingerprint()
        elsewhere = folder.parent / "elsewhere"
        elsewhere.mkdir()
        for part in ("images/horse", "images/tiger/deep", "unlabelled"):
            target = elsewhere / part.replace("/", "-")
            (folder / part).rename(target)
            (folder / part).symlink_to(target)
        single = elsewhere / "unlabelled/zebra-1.png"
        single.rename(elsewhere / "one.png")
        single.symlink_to(elsewhere / "one.png")
        refusals = [f.message for f in report_folder(folder).problems if "link" in f.message]
        assert len(refusals) == 3
        assert all("--follow-links" in message for message in refusals)
        assert report_folder(folder, follow_links=True).problems == []
        assert load_folder(folder, follow_links=True)[0].fingerprint() == before

    def test_links_that_lead_in_a_circle_end(self, folder):
        (folder / "unlabelled/up").symlink_to(folder)
        (folder / "unlabelled/self").symlink_to("self")
        (folder.parent / "other").mkdir()
        (folder.parent / "other/back").symlink_to(folder / "unlabelled")
        (folder / "unlabelled/other").symlink_to(folder.parent / "other")
        said = {f.file: f.message for f in report_folder(folder, follow_links=True).problems}
        assert said.keys() == {"unlabelled/up", "unlabelled/other/back"}
        assert all("a link to a folder that it is in" in message for message in said.values())

    def test_links_to_images_within_the_folder_are_read(self, folder):
        photograph(folder / "store/1.png", (7, 7, 7))
        (folder / "images/horse/link.png").symlink_to("../../store/1.png")
        assert not found(folder)
        assert len(load_folder(folder)[0].train) == 7

    def test_images_that_cannot_be_decoded(self, folder):
        (folder / "images/horse/empty.jpg").write_bytes(b"")
        (folder / "unlabelled/text.png").write_text("no image")
        assert [(s, f) for s, f, _, _ in found(folder)] == [
            ("warning", "images/horse/empty.jpg"),
            ("warning", "unlabelled/text.png"),
        ]
        assert "it cannot be read as an image (the file is empty)" in found(folder)[0][3]

    @pytest.mark.parametrize("part", ["images/horse", "unlabelled"])
    def test_a_class_or_a_pool_of_which_no_image_can_be_decoded(self, folder, part):
        files = [path for path in (folder / part).rglob("*") if path.is_file()]
        for path in files:
            path.write_text("no image")
        severities = [severity for severity, *_ in found(folder)]
        assert severities == ["error"] + ["warning"] * len(files)
        assert found(folder)[0][1:] == (part, None, "none of its photographs can be read.")

    def test_labelled_photographs_in_the_pool(self, folder):
        (folder / "unlabelled/copy.png").write_bytes((folder / "images/horse/1.jpg").read_bytes())
        severity, file, _, message = the_one(folder)
        assert (severity, file) == ("warning", "unlabelled/copy.png")
        assert "it is the same as 'images/horse/1.jpg'" in message

    def test_photographs_that_are_in_the_pool_twice(self, folder, monkeypatch):
        rng = np.random.default_rng(0)
        picture = Image.fromarray(rng.integers(0, 256, (6, 9, 3), dtype=np.uint8)).resize(
            (240, 160), Image.Resampling.BICUBIC
        )
        picture.save(folder / "unlabelled/a.png")
        (folder / "unlabelled/b.png").write_bytes((folder / "unlabelled/a.png").read_bytes())
        picture.resize((180, 120)).save(folder / "unlabelled/c.jpg", quality=80)
        picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(folder / "unlabelled/d.png")
        same, nearly = found(folder)
        assert same[:2] == ("warning", "unlabelled/b.png")
        assert nearly[:2] == ("warning", "unlabelled/c.jpg")
        assert "it is the same as 'unlabelled/a.png': both count once" in same[3]
        assert "it is nearly the same as 'unlabelled/a.png'" in nearly[3]
        monkeypatch.setattr("pren.data.folder.copies.NAMED", 1)
        assert [message for *_, message in found(folder)][1] == "1 more photographs are the same as others, or nearly."

    def test_a_name_that_is_no_text(self, folder):
        path = os.fsencode(folder / "unlabelled") + b"/\xff.png"
        try:
            os.rename(folder / "unlabelled/zebra-5.png", path)  # noqa: PTH104 - pathlib has no bytes
        except OSError:
            pytest.skip("this file system has no such names")
        severity, file, _, message = the_one(folder)
        assert (severity, file) == ("error", "unlabelled/\udcff.png")
        assert "its name is not valid text" in message

    def test_folders_that_are_closed_to_us(self, folder, monkeypatch):
        real = os.scandir
        closed = {str(folder / "unlabelled/more")}

        def scandir(path):
            if str(path) in closed:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path)

        monkeypatch.setattr(os, "scandir", scandir)
        (folder / "answers.csv").unlink()
        assert the_one(folder) == ("error", "unlabelled/more", None, "it cannot be read: Permission denied.")

    def test_the_report_counts(self, folder):
        (folder / "images/horse/notes.txt").write_text("")
        for number in range(2):
            (folder / f"unlabelled/{number}.HEIC").write_text("")
        (folder / "unlabelled/README").write_text("")
        report = report_folder(folder)
        assert (report.seen, report.unseen, report.attributes) == (2, 2, 3)
        assert (report.images, report.pool, report.answers) == (6, 8, 2)
        assert report.ignored == {".heic": 2, ".txt": 1, "README": 1}
        assert report.problems == []

    def test_there_must_be_a_folder(self, folder):
        for path in (folder / "nowhere", folder / "signatures.csv", "x" * 5000):
            with refused("file-missing"):
                report_folder(path)


class TestAnswers:
    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ("zebra-9.png,zebra", "there is no photograph 'zebra-9.png' in unlabelled. Did you mean 'zebra-"),
            ("unlabelled/zebra-5.png,zebra", "Leave unlabelled/ off."),
            ("zebra-1.png,seal", "'zebra-1.png' is already in line 2: remove one."),
            ("/etc/passwd,zebra", "there is no photograph '/etc/passwd' in unlabelled"),
            ("../unlabelled/zebra-5.png,zebra", "there is no photograph"),
            ("more/../zebra-5.png,zebra", "there is no photograph"),
            ("more\\seal-2.png,seal", "there is no photograph"),
            ("C:/zebra-5.png,zebra", "there is no photograph"),
            (",zebra", "there is no photograph '' in unlabelled."),
            ("zebra-5.png,zbera", "class 'zbera' has no row in signatures.csv. Did you mean 'zebra'?"),
            ("zebra-5.png", "it has 1 field, but the header (line 1) has 2."),
            ('zebra-5.png,"zebra', "a quotation mark is never closed"),
        ],
    )
    def test_rows(self, folder, row, message):
        with (folder / "answers.csv").open("a") as file:
            file.write(f"{row}\n")
        severity, file, line, said = the_one(folder)
        assert (severity, file, line) == ("error", "answers.csv", 5)
        assert message in said

    def test_a_link_that_leads_out(self, folder):
        photograph(folder.parent / "secret.png", (9, 9, 9))
        (folder / "unlabelled/out.png").symlink_to(folder.parent / "secret.png")
        (folder / "answers.csv").write_text("file,class\nout.png,zebra\n")
        assert [(f, line) for _, f, line, _ in found(folder)] == [("unlabelled/out.png", None), ("answers.csv", 2)]

    @pytest.mark.parametrize("header", ["class,file", "file,class,sure", "zebra-1.png,zebra"])
    def test_the_header(self, folder, header):
        (folder / "answers.csv").write_text(f'{header}\n"no\n')  # of what follows nothing is said
        assert the_one(folder) == ("error", "answers.csv", 1, "the first line must be file,class.")

    def test_seen_classes_are_a_warning(self, folder):
        (folder / "answers.csv").write_text("file,class\nzebra-1.png,zebra\nzebra-3.png,horse\nzebra-5.png,tiger\n")
        severity, file, line, message = the_one(folder)
        assert (severity, file, line) == ("warning", "answers.csv", 3)
        assert "'horse' is a seen class (lines like this: 2)" in message
        assert report_folder(folder).answers == 1
        assert report_folder(folder, "gzsl").answers == 3


class TestSeveral:
    def test_all_are_found_at_once_errors_first(self, folder):
        (folder / "signatures.csv").write_text(SIGNATURES + "otter,1,x,inf\nhorse,1,1,1\n")
        (folder / "answers.csv").write_text("file,class\nzebra-1.png,horse\nnone.png,otter\n")
        (folder / "images/bear").mkdir()
        (folder / "unlabelled/bad.png").write_bytes(b"")
        assert [(s, f, line) for s, f, line, _ in found(folder)] == [
            ("error", "signatures.csv", 6),
            ("error", "signatures.csv", 6),
            ("error", "signatures.csv", 7),
            ("error", "images/bear", None),
            ("error", "images/bear", None),
            ("error", "answers.csv", 3),
            ("warning", "answers.csv", 2),
            ("warning", "unlabelled/bad.png", None),
        ]

    def test_the_search_for_the_nearest_name_is_bounded(self):
        findings = Findings()
        names = [f"class {number}" for number in range(findings_module.MOST_COMPARED // 2)]
        assert findings.nearest("x" * 101, names) == ""
        assert findings.nearest("clas 77", names[:99]) == " Did you mean 'class 77'?"
        assert findings.nearest("clas 77", names * 2) == ""

    def test_a_finding_says_where(self):
        assert str(Finding("a.csv", "wrong.", 3)) == "a.csv, line 3: wrong."
        assert str(Finding("a\x1b.png", "wrong.")) == "'a\\x1b.png': wrong."


@pytest.fixture(scope="module")
def one_folder():
    with tempfile.TemporaryDirectory() as parent:
        yield fill(Path(parent))


def as_csv(rows):
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


cell = st.sampled_from(
    [
        "horse",
        "tiger",
        "zebra",
        "seal",
        "class",
        "file",
        "zebra-1.png",
        "more/seal-0.png",
        "1",
        "0",
        "nan",
        "",
        " ",
        '"',
    ]
) | st.text(st.characters(codec="utf-8"), max_size=6)
content = (
    st.binary(max_size=60)
    | st.text(max_size=60).map(lambda text: text.encode(errors="surrogatepass"))
    | st.lists(st.lists(cell, max_size=4), max_size=6).map(as_csv)
    | st.lists(st.lists(cell, max_size=4), max_size=6).map(lambda rows: b"class,a,b\n" + as_csv(rows))
    | st.lists(st.lists(cell, min_size=2, max_size=2), max_size=6).map(lambda rows: b"file,class\n" + as_csv(rows))
)


class TestAnyContent:
    @settings(max_examples=150)
    @example(name="signatures.csv", content=b'class,a\n"')
    @example(name="signatures.csv", content=b'class,a\r\n"\r\n",1\r\n')
    @example(name="answers.csv", content=b"file,class\n\xef\xbb\xbf,\n")
    @given(name=st.sampled_from(["signatures.csv", "answers.csv"]), content=content)
    def test_it_is_read_or_refused(self, one_folder, name, content):
        before = (one_folder / name).read_bytes()
        (one_folder / name).write_bytes(content)
        try:
            said = read_folder(one_folder).findings.listed()
            lines = content.count(b"\n") + content.count(b"\r") + 1
            assert all(1 <= (finding.line or 1) <= lines for finding in said if finding.file == name)
            try:
                problem, answers = load_folder(one_folder)
            except PrenError:
                assert any(finding.severity == "error" for finding in said)
            else:
                assert all(finding.severity == "warning" for finding in said)
                assert len(answers.labels) == len(answers.names) == len(problem.pool) == 8
        finally:
            (one_folder / name).write_bytes(before)

    @settings(max_examples=60)
    @given(
        values=st.lists(
            st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2).filter(any),
            min_size=3,
            max_size=6,
        ),
        quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    )
    def test_a_right_table_is_read_as_it_was_written(self, one_folder, values, quoting):
        names = ["horse", "tiger", *(f"new, {number}" for number in range(len(values) - 2))]
        before = (one_folder / "signatures.csv").read_bytes()
        with (one_folder / "signatures.csv").open("w", newline="") as file:
            writer = csv.writer(file, quoting=quoting)
            writer.writerow(["class", "a", "b"])
            writer.writerows([name, *row] for name, row in zip(names, values, strict=True))
        answers = (one_folder / "answers.csv").read_bytes()
        (one_folder / "answers.csv").unlink()
        try:
            table = load_folder(one_folder)[0].classes
        finally:
            (one_folder / "signatures.csv").write_bytes(before)
            (one_folder / "answers.csv").write_bytes(answers)
        assert table.names == tuple(names)
        for row, expected in zip(table.signatures, values, strict=True):
            largest = max(map(abs, expected))
            scaled = [value / largest for value in expected]
            length = sum(value * value for value in scaled) ** 0.5
            assert row.tolist() == pytest.approx([value / length for value in scaled])
