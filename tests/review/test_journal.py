"""What a person said is never lost, and can be taken back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from pren.review.journal import Journal, Verdict, given_rows

ZEBRA, SEAL, STRANGER = Verdict("zebra"), Verdict("seal"), Verdict(mark="stranger")
ACTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("ab"), st.dictionaries(st.sampled_from(["1", "2", "ü\n"]), st.sampled_from([
            ZEBRA, SEAL, STRANGER, Verdict(mark="open")]), min_size=1)),
        st.tuples(st.sampled_from("ab"), st.none()),
    ),
    max_size=12,
)  # fmt: skip


@given(ACTS)
def test_it_says_what_a_plain_list_of_answers_says(tmp_path_factory, acts):
    folder = tmp_path_factory.mktemp("journal")
    journal, standing = Journal(folder), []
    for window, files in acts:
        if files is not None:
            journal.add(window, files, {})
            standing.append((window, files))
            continue
        own = [place for place, (other, _) in enumerate(standing) if other == window]
        undone = journal.undo(window)
        assert (undone is not None) == bool(own)
        if own:
            assert dict(undone.files) == standing.pop(own[-1])[1]
    expected = {}
    for _, files in standing:
        expected.update(files)
    expected = {name: verdict for name, verdict in expected.items() if verdict.mark != "open"}
    assert journal.verdicts() == expected
    journal.close()
    again = Journal(folder)
    assert (again.verdicts(), again.position) == (expected, journal.position)
    again.close()


def test_half_a_line_at_the_end_is_dropped_and_a_damaged_one_is_refused(tmp_path):
    journal = Journal(tmp_path)
    journal.add("a", {"1.png": ZEBRA}, {"zebra": ZEBRA})
    journal.close()
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole + b'{"number": 2, "wind')
    again = Journal(tmp_path)
    again.add("b", {"1.png": SEAL}, {})
    again.close()
    assert journal.path.read_bytes().startswith(whole)
    last = Journal(tmp_path)
    assert last.verdicts() == {"1.png": SEAL}
    assert last.group_verdicts(0) == {"zebra": ZEBRA}
    assert last.group_verdicts(1) == {}
    assert last.undo("c").number == 2  # of an earlier session: any window may
    last.close()
    for damage in (b"no\n", b"{}\n", b"[]\n", whole.replace(b"zebra", b"zebra\n"), whole.replace(b'""', b'"odd"', 1)):
        journal.path.write_bytes(whole + damage)
        with refused("damaged answers.jsonl"):
            Journal(tmp_path)


def test_a_window_that_has_not_seen_the_last_answer_is_told(tmp_path):
    journal = Journal(tmp_path)
    journal.add("a", {"1.png": ZEBRA}, {})
    journal.add("b", {"2.png": ZEBRA}, {}, since=0)  # about another photograph
    with refused("answered 1.png"):
        journal.add("b", {"1.png": SEAL}, {}, since=0)
    journal.add("a", {"1.png": SEAL}, {}, since=0)  # its own answer
    journal.add("b", {"1.png": ZEBRA}, {}, since=journal.position)
    assert journal.verdict("1.png") == ZEBRA
    journal.close()


def test_rows_of_other_hands_stay():
    now = [("1.png", "seal"), ("2.png", "horse"), ("3.png", "zebra")]
    touched = {"1.png": "", "2.png": "tiger", "4.png": "seal", "5.png": ""}
    verdicts = {"1.png": ZEBRA, "4.png": STRANGER}
    assert given_rows(now, touched, verdicts) == [("1.png", "zebra"), ("2.png", "tiger"), ("3.png", "zebra")]


def test_a_full_disk_keeps_what_was_there(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    journal.add("a", {"1.png": ZEBRA}, {})
    whole = journal.path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with refused("write-failed answers.jsonl"):
            journal.add("a", {"2.png": SEAL}, {})
    assert journal.path.read_bytes() == whole
    assert journal.position == 1
    journal.add("a", {"3.png": SEAL}, {})
    journal.close()


@pytest.mark.parametrize("content", [b"", b"\n", b"not a line"])
def test_an_empty_journal(tmp_path, content):
    (tmp_path / "answers.jsonl").write_bytes(content)
    if content == b"\n":
        with refused("damaged"):
            Journal(tmp_path)
        return
    journal = Journal(tmp_path)
    assert journal.undo("a") is None
    assert journal.verdicts() == {}
    journal.close()
