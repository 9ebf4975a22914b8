"""What campaigns put down."""

from campaigns.journal import Journal


def test_it_comes_back_by_kind_without_the_half_line_of_an_interruption(tmp_path):
    path = tmp_path / "journal"
    assert Journal(path).read("a") == []
    Journal(path).add("a", {"number": 1, "lost": None})
    Journal(path).add("b", {"number": 2})
    path.write_text(path.read_text() + '\n{"kind": "a", "num')
    Journal(path).add("a", {"number": 3})
    assert Journal(path).read("a") == [{"number": 1, "lost": None}, {"number": 3}]
    assert Journal(path).read("b") == [{"number": 2}]


def test_without_a_file_nothing_is_kept():
    Journal(None).add("a", {})
    assert Journal(None).read("a") == []
