"""What each way from photographs to labels takes, and how good it is, from stored cells."""

import json

import pytest

from benchmarks import finetuning, minutes
from benchmarks.finetuning import TITLES, WAYS


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Cells of made-up figures, by name."""
    for module in (finetuning, minutes):
        monkeypatch.setattr(module, "STORE", tmp_path)

    def keep(name, strength=None, **top1):
        figures = {method: {"seconds": 60, "top1": value, "ausuc": None} for method, value in top1.items()}
        note = {} if strength is None else {"strength": strength}
        (tmp_path / f"{name}.json").write_text(json.dumps({"note": note, "figures": figures}))

    return keep


def test_every_way_has_a_title():
    assert TITLES.keys() == WAYS.keys()


@pytest.mark.parametrize(
    ("way", "note", "row"),
    [
        ("two", {}, "Lite0 + Lite1, frozen"),
        ("two-mirrored", {}, "Lite0 + Lite1, mirrored"),
        ("first", {"strength": 0.25}, "Lite0, last stage learns first: strength 0.25"),
        ("first", {"strength": 0}, "Lite0, last stage learns first: switched off"),
        ("first-0", {"strength": 0.0}, "Lite0, frozen"),
        ("first-two-0.25", {"strength": 0.25}, "Lite0, last two stages learn first: strength 0.25"),
    ],
)
def test_what_a_cell_is_called(way, note, row):
    assert finetuning._row(way, note) == row


def test_minutes_by_hand():
    assert minutes.minutes("frozen", {"extract": 60}) == pytest.approx(11_788 / 1000)
    four_epochs = 4 * (8_821 + 3 * 8_821 * 2 / 3) * 6  # all once, and three times two thirds
    passes = (11_788 + 3 * 2 * 8_821) * 3  # in the end, and of each draw with both strengths
    costs = {"extract": 60, "learn": 6, "make": 3}
    assert minutes.minutes("first", costs) == pytest.approx((60 * 11_788 + four_epochs + passes) / 60_000)


def test_points_are_means_over_the_seeds_of_a_way(store):
    store("first_PS_0", 0.25, **{"PrEN-Pool": 0.6})
    store("first-0.25_PS_1", 0.25, **{"PrEN-Pool": 0.7, "pren": 0.5})
    store("first-0_PS_0", 0.0, **{"PrEN-Pool": 0.4})
    store("first-two-0.25_PS_0", 0.25, **{"PrEN-Pool": 0.9})
    store("first_SS_0", 0.25, **{"PrEN-Pool": 0.1})
    costs = {"frozen": {"extract": 60}, "first": {"extract": 60, "learn": 0, "make": 0}}
    found = {(point.way, point.method): point for point in minutes.points(costs)}
    assert {key: (round(point.top1, 6), point.seeds) for key, point in found.items()} == {
        ("frozen", "PrEN-Pool"): (40, 1),
        ("first", "PrEN-Pool"): (65, 2),
        ("first", "pren"): (50, 1),
    }
    assert found["first", "PrEN-Pool"].minutes == pytest.approx(11_788 / 1000 + 1)  # the fit took a minute


def test_the_figure(store, tmp_path):
    store("first-0_PS_0", 0.0, **{"PrEN-Pool": 0.4})
    minutes.draw(list(minutes.points({"frozen": {"extract": 60}})), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
