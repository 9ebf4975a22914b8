"""The page as a person uses it: Chromium, the keyboard, a reload, a killed program, a phone."""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import EVIL

pytestmark = pytest.mark.slow

SHOTS = os.environ.get("PREN_SHOTS")  # a folder for pictures that a person looks at


class Program:
    """`pren review` in a process of its own."""

    def __init__(self, place):
        command = [sys.executable, "-m", "pren.cli", "review", str(place / "run"), "--no-browser", "--threads", "1"]
        command += ["--data", str(place / "photographs"), "--cache", str(place / "cache"), "--quiet"]
        source = str(Path(__file__).parents[2] / "src")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": source, "COLUMNS": "300"}
        )
        self.link = re.search(r"http://\S+", self.process.stdout.readline())[0]

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait(60)
        self.process.stdout.close()
        return self.process.returncode


@pytest.fixture
def start(pile):
    programs = []

    def run():
        programs.append(Program(pile[0]))
        return programs[-1]

    yield run
    for program in programs:
        if program.process.poll() is None:
            program.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def shared(piled, tmp_path_factory):
    """The link of a program that several tests use."""
    place = tmp_path_factory.mktemp("shared")
    for name in ("photographs", "run", "cache"):
        shutil.copytree(piled[0] / name, place / name)
    program = Program(place)
    yield program.link
    program.end(signal.SIGKILL)


@pytest.fixture
def visit(browser):
    """Open a link; what a page does wrong fails the test at its end."""
    contexts, trouble = [], []

    def run(link, width=1280, dark=False):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", bypass_csp=False
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(message.text) if is_trouble(message) else None)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(dialog.message))
        page.goto(link)
        return page

    yield run
    for context in contexts:
        context.close()
    assert trouble == []


def is_trouble(message):
    """Chromium reports requests to a program that was killed on purpose."""
    return message.type == "error" and "net::ERR_" not in message.text


def rested(page):
    """Wait until all answers have counted."""
    page.wait_for_function(
        "fetch('/api/state').then(answer => answer.json()).then(state => state.learned && state.forecast.now)",
        timeout=60_000,
        polling=300,
    )


def barriers(page, axe):
    page.evaluate(axe)
    found = page.evaluate("axe.run()")["violations"]
    return [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] in ("serious", "critical")]


def shoot(page, name):
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png")


def labels(page):
    text = page.evaluate("fetch('/api/labels/csv').then(answer => answer.text())")
    return {row["input"]: row["class"] for row in csv.DictReader(text.splitlines())}


def test_ten_keys_settle_swapped_names_and_survive_a_reload_and_a_kill(start, visit, pile, axe):
    _, truth = pile
    program = start()
    page = visit(program.link)
    page.wait_for_selector(".group h1")
    assert "token" not in page.url
    keys = 0

    def press(key):
        nonlocal keys
        keys += 1
        page.keyboard.press(key)

    seen = set()
    while len(seen) < 3:
        name = page.locator(".group h1").inner_text()
        assert name not in seen
        seen.add(name)
        if name in ("yellow", "violet"):
            seen |= {"yellow", "violet"}
            press("s")
            page.wait_for_selector("dialog[open] input")
            page.keyboard.type("violet" if name == "yellow" else "yellow")
            press("Enter")
        else:
            press("Enter")
        page.wait_for_function("name => document.querySelector('.group h1')?.innerText !== name", arg=name)
        if len(seen) == 3:
            break
    page.reload()
    page.wait_for_selector(".group h1, .note h1")
    assert program.end(signal.SIGKILL) == -signal.SIGKILL
    page.locator(".banner").wait_for()  # the connection is lost
    shoot(page, "lost")
    page.context.close()

    program = start()
    page = visit(program.link)
    page.wait_for_selector(".group h1")
    press("Enter")
    page.get_by_text("Every name is settled").wait_for()
    rested(page)
    assert keys <= 10
    assert labels(page) == truth
    shoot(page, "settled")
    assert barriers(page, axe) == []
    assert program.end(signal.SIGTERM) == 0


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_every_view_fits_and_has_no_serious_barrier(shared, visit, axe, width, dark):
    page = visit(shared, width, dark)

    def check(name):
        shoot(page, f"{name}-{width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert barriers(page, axe) == [], name

    page.wait_for_selector(".group h1")
    page.wait_for_selector(".beside .said")
    page.locator(".names button", has_text="<img src").click()
    page.locator(".group h1", has_text="<img src").wait_for()
    assert EVIL in page.locator(".group h1").inner_text()
    page.locator(".photo").nth(1).click()
    check("group")
    page.keyboard.press("t")
    page.wait_for_selector("dialog[open] input")
    page.keyboard.type("gre")
    assert page.locator("[role=option]").first.inner_text().startswith("gre")
    check("names")
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+?")
    page.locator("dialog", has_text="A photograph").wait_for()
    check("keys")
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    later = {"window": "w", "since": 0, "labels": [{"ids": [2, 3, 4], "mark": "later"}], "groups": {}}
    page.evaluate(
        "said => fetch('/api/answers', {method: 'POST', body: JSON.stringify(said),"
        " headers: {'content-type': 'application/json'}}).then(answer => answer.json())",
        later,
    )
    page.keyboard.press("p")
    page.wait_for_selector(".one h1")
    check("photographs")
    file = page.locator(".answers .file").inner_text()
    left = int(page.get_by_text("photographs in doubt").inner_text().split()[0])
    page.keyboard.press("ArrowRight")
    page.wait_for_function("file => document.querySelector('.answers .file').innerText !== file", arg=file)
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("file => document.querySelector('.answers .file').innerText === file", arg=file)
    page.keyboard.press("2")
    page.wait_for_function("file => document.querySelector('.answers .file')?.innerText !== file", arg=file)
    fewer, more = f"{left - 1} photographs in doubt", f"{left} photographs in doubt"
    page.get_by_text(fewer, exact=True).wait_for()
    page.keyboard.press("u")
    page.get_by_text(more, exact=True).wait_for()
    page.keyboard.press("v")
    page.locator("select").select_option(label="All")
    page.wait_for_selector(".cell .photo")
    page.locator(".cell .photo").first.click()
    page.locator(".bar", has_text="1 photograph: name").wait_for()
    check("grid")
    page.keyboard.press("z")
    page.wait_for_selector("dialog .zoom img")
    check("zoom")
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    page.keyboard.press("o")
    page.locator("dialog", has_text="Label Studio").wait_for()
    check("out")
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    page.keyboard.press("c")
    page.get_by_label("Name", exact=True).fill("amber")
    page.get_by_label("Or its attributes").fill("red=1, green=0.5")
    page.keyboard.press("Enter")
    page.locator("dialog", has_text="It would catch").wait_for()
    check("new")
    page.keyboard.press("Escape")
    assert page.evaluate("window.hacked") is None


def test_two_windows_see_each_other_s_answers(shared, visit):
    one, other = visit(shared), visit(shared)
    for page in (one, other):
        page.wait_for_selector(".group h1")
    name = one.locator(".group h1").inner_text()
    one.keyboard.press("Enter")
    other.wait_for_function("name => document.querySelector('.group h1')?.innerText !== name", arg=name, timeout=20_000)
