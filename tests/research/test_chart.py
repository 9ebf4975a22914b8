"""The bar chart: what it draws, read off the figure itself."""

import numpy as np
import pytest
from PIL import Image

from pren.research import chart
from pren.research.cells import Result
from pren.research.chart import write_chart
from pren.research.summary import summarise

pytestmark = pytest.mark.slow


def rows(*data, method="A"):
    return [
        summarise(name, title, False, results)
        for name in data
        for title, results in (
            (method, [Result(figures={"top1": 0.25}), Result(figures={"top1": 0.75})]),
            ("B", [Result(figures={"top1": 0.625})]),
            ("C", [Result(error="never")]),
        )
    ]


def test_bars_error_bars_and_names():
    figure = chart._draw(rows("birds", "cats"), "zsl")
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["birds", "cats"]
    for ax in figure.axes:
        assert [bar.get_width() for bar in ax.patches] == [50.0, 62.5]
        said = [text.get_text() for text in ax.texts]
        assert said == ["50.0 ± 35.4", "62.5", "failed"]
        (error,) = [c for c in ax.containers if type(c).__name__ == "ErrorbarContainer"]
        ((low, high),) = [segment[:, 0] for segment in error.lines[2][0].get_segments()]
        assert (high - low) / 2 == pytest.approx(100 * np.std([0.25, 0.75], ddof=1))
        assert ax.get_ylim() == (2.5, -0.5), "the first is on top, and one without a bar has its room"
        assert ax.get_xlabel() == "Top-1, per cent (zsl)"
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["A", "B", "C"]


def test_files_are_pictures_and_the_same_every_time(tmp_path):
    contents = []
    for _ in range(2):
        write_chart(rows("birds"), "zsl", tmp_path)
        contents.append([(tmp_path / name).read_bytes() for name in ("chart.png", "chart.svg")])
    assert contents[0] == contents[1]
    with Image.open(tmp_path / "chart.png") as image:
        assert image.width > 400
        assert len(np.unique(np.asarray(image.convert("L")))) > 2
    assert b"<svg" in contents[0][1]


@pytest.mark.parametrize("hostile", [r"$\frac{", "$x$", "a\nb", "x" * 500, "鳥\x1b"])
def test_hostile_names_are_drawn_as_they_are(hostile, tmp_path):
    write_chart(rows(hostile, method=hostile), "zsl", tmp_path)
    assert (tmp_path / "chart.png").stat().st_size > 1000


def test_all_failed(tmp_path):
    write_chart([summarise("birds", "A", False, [Result(error="never")])], "gzsl", tmp_path)
    assert (tmp_path / "chart.svg").is_file()
