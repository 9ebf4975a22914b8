"""A run on photographs whose names are hostile, and its report; a browser, where there is one."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pren.runs.run import run_config
from pren.store.config import RunConfig

EVIL = "<img src=x onerror=window.hacked=1>\"'&amp;<svg onload=window.hacked=1>".replace("/", "")
EVIL_FILE = "</script><script>window.hacked=1</script>.png".replace("/", "_")
COLOURS = {
    "red": (1, 0, 0),
    "green": (0, 1, 0),
    "blue": (0, 0, 1),
    "cyan": (0, 1, 1),
    "white": (1, 1, 1),
    "yellow": (1, 1, 0),
    EVIL: (1, 0, 1),
    "grey": (0.5, 0.5, 0.5),
}
SEEN = ("red", "green", "blue", "cyan", "white")
SMALL = {"backbone": "small-cnn", "rounds": 2, "heads": 3, "dim": 2, "hidden": [8], "batch_size": 4, "n_max": 2}


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)


def make_photographs(folder, *, answers=True):
    """Five seen colours, three unseen ones; one class and one file have names that want to run."""
    rng = np.random.default_rng(0)

    def draw(path, name):
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = 200 * np.array(COLOURS[name]) + rng.integers(0, 50, (40, 60, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(path)

    for name in SEEN:
        for number in range(3):
            draw(folder / "images" / name / f"{number}.png", name)
    unseen, rows = [name for name in COLOURS if name not in SEEN], []
    for number in range(12):
        file, name = (EVIL_FILE if number == 1 else f"photo_{number:02d}.png"), unseen[number % 3]
        draw(folder / "unlabelled" / file, name)
        rows.append((file, name))
    quoted = [[text.replace('"', '""') for text in row] for row in rows]
    table = [f'"{name.replace(chr(34), chr(34) * 2)}",{r},{g},{b}' for name, (r, g, b) in COLOURS.items()]
    (folder / "signatures.csv").write_text("\n".join(["class,red,green,<b>blue</b>", *table, ""]))
    if answers:
        lines = [f'"{file}","{name}"' for file, name in quoted]
        (folder / "answers.csv").write_text("\n".join(["file,class", *lines, ""]))
    return folder


def fit(folder, out, method="pren", rehearsals=2, **params):
    chosen = {**SMALL, "initial_batches": 3, "batches": 2, **params} if method == "pren" else params
    config = RunConfig(data=str(folder), method=method, params=chosen, rehearsals=rehearsals)
    return run_config(config, out, command="pren fit")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """A run on such photographs, and its report."""
    place = tmp_path_factory.mktemp("hostile")
    return fit(make_photographs(place / "photographs"), place / "run")


@pytest.fixture(scope="session")
def features(tmp_path_factory, arrays):
    """A run on features with answers, by a method whose scores are sums over attributes."""
    place = tmp_path_factory.mktemp("features")
    np.savez(place / "data.npz", **arrays())
    return fit(place / "data.npz", place / "run", "eszsl")


# --- a browser -----------------------------------------------------------------------------------------------------


class Page:
    """A page in a browser, and everything that should not have happened there."""

    def __init__(self, page, path):
        self.page, self.trouble = page, []
        page.on("console", lambda message: self.trouble.append(message.text))
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.on("dialog", lambda dialog: self.trouble.append(dialog.message))
        page.on("request", lambda request: self.trouble.append(request.url) if self._outside(request.url) else None)
        page.goto(Path(path).absolute().as_uri())

    @staticmethod
    def _outside(url):
        return not url.startswith(("file:", "data:"))


@pytest.fixture
def visit(browser):
    """Open a page at some width and in some colours; what it does wrong fails the test at its end."""
    contexts, pages = [], []

    def run(path, width=1280, dark=False):
        colours = "dark" if dark else "light"
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=colours))
        pages.append(Page(contexts[-1].new_page(), path))
        return pages[-1].page

    yield run
    trouble = [said for page in pages for said in page.trouble]
    for context in contexts:
        context.close()
    assert trouble == []
