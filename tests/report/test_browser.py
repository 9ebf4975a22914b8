"""Reports as a person sees them, in a real browser: every width, light and dark, on paper, by keyboard."""

import socket

import pytest

from pren.research.pages import report_experiments
from pren.research.reproduction.sheets import Sheet, keep_sheets

from .conftest import EVIL, EVIL_FILE

pytestmark = pytest.mark.slow
WIDTHS = [1280, 390]


@pytest.fixture(scope="module")
def pages(hostile, experiments, tmp_path_factory):
    out = tmp_path_factory.mktemp("pages") / "experiments.html"
    return {"run": hostile.paths.report, "experiments": report_experiments(experiments, out).path}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["run", "experiments"])
def test_nothing_is_wider_than_the_window_and_there_is_no_serious_barrier(visit, pages, axe, name, width, dark):
    page = visit(pages[name], width, dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelector('meta[http-equiv]').remove()")
    page.evaluate(axe)
    found = page.evaluate("axe.run()")["violations"]
    serious = [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] in ("serious", "critical")]
    assert serious == []


def test_hostile_names_stay_text(visit, pages):
    page = visit(pages["run"])
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    assert page.locator("h3", has_text=EVIL).first.is_visible()
    assert page.locator("figcaption .file", has_text=EVIL_FILE).count() <= 1
    assert EVIL_FILE in page.content().replace("&lt;", "<").replace("&gt;", ">").replace("<wbr>", "")
    assert page.locator("script").count() == 1


@pytest.mark.parametrize("policy", [True, False], ids=["with its policy", "without it, to see that this would tell"])
def test_what_slips_past_the_escaping_neither_runs_nor_calls_home(browser, pages, tmp_path, policy):
    text = pages["run"].read_text(encoding="utf-8")
    if not policy:
        text = text.replace("Content-Security-Policy", "X-Nothing", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(2)
        call = f"<img src=http://127.0.0.1:{server.getsockname()[1]}/x.png>"
        holes = f"<script>window.hacked=1</script><img src=x onerror=window.hacked=1>{call}"
        (tmp_path / "holes.html").write_text(text.replace("<main", f"{holes}<main", 1), encoding="utf-8")
        page = browser.new_page()
        page.goto((tmp_path / "holes.html").as_uri(), wait_until="commit")
        page.wait_for_selector("footer")
        assert page.evaluate("window.hacked") == (None if policy else 1)
        if policy:
            with pytest.raises(TimeoutError):
                server.accept()
        else:
            server.accept()[0].close()
        page.close()


def column(page, table, place):
    cells = page.locator(f"#{table} tbody tr:visible > :nth-child({place})")
    return [text.strip() for text in cells.all_inner_texts()]


def test_a_table_is_sorted_by_pressing_a_heading(visit, pages):
    page = visit(pages["run"])
    names = column(page, "class-table", 1)
    images = page.locator("#class-table thead button", has_text="photographs")
    images.click()
    counts = [int(text) for text in column(page, "class-table", 2)]
    assert counts == sorted(counts, reverse=True)
    images.focus()
    page.keyboard.press("Enter")
    assert [int(text) for text in column(page, "class-table", 2)] == sorted(counts)
    assert page.locator("#class-table th[aria-sort=ascending]").count() == 1
    page.locator("#class-table thead button", has_text="class").first.click()
    assert sorted(column(page, "class-table", 1)) == sorted(names)


def test_rows_are_filtered_by_what_they_say(visit, tmp_path):
    rows = [[f"a thing {number}" if number < 6 else f"row {number}", str(number)] for number in range(9)]
    keep_sheets(tmp_path, [Sheet(name="rows", title="Rows", header=["class", "images"], rows=rows)])
    page = visit(report_experiments(tmp_path).path)
    for typed, left, said in (("THING a", 6, "6 of 9"), ("nothing such", 0, "0 of 9"), ("", 9, "")):
        page.get_by_placeholder("Filter the rows").fill(typed)
        assert page.locator("#rows-table tbody tr:visible").count() == left
        assert page.locator(".filter [role=status]").inner_text() == said


def test_a_point_that_is_touched_says_what_it_is(visit, pages):
    page = visit(pages["run"])
    page.locator("#map circle").first.dispatch_event("click")
    assert "sure" in page.locator("#map .tip").inner_text()


def test_it_can_be_printed(visit, pages, tmp_path):
    page = visit(pages["run"], dark=True)
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert len(page.pdf(format="A4")) > 10_000


def test_pictures_are_shown(visit, pages):
    page = visit(pages["run"])
    broken = page.evaluate("[...document.images].filter(i => !i.naturalWidth).length")
    assert (broken, page.locator("img").count() > 10) == (0, True)
    alts = page.evaluate("[...document.images].map(i => i.alt)")
    assert all(", labelled " in alt for alt in alts)
