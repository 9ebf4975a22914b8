"""A review as the page drives it, without a browser."""

from __future__ import annotations

import csv
import io
import json
import time

import pytest
from fastapi.testclient import TestClient
from PIL import Image
from refusals import refused

from pren.review.guard import Access
from pren.review.reviewing import make_review
from pren.review.session import Session

from .conftest import EVIL

pytestmark = pytest.mark.slow

HERE = "http://127.0.0.1:8000"


class Reviewer:
    """A person with one window."""

    def __init__(self, place, window="w"):
        self.place, self.window = place, window
        moved = {"data": str(place / "photographs"), "cache": str(place / "cache")}
        self.session = Session(place / "run", moved)
        self.client = TestClient(make_review(self.session, Access(token=None)), base_url=HERE)

    def __enter__(self):
        self.client.__enter__()
        return self

    def __exit__(self, *reason):
        self.client.__exit__(*reason)
        self.session.close()

    def get(self, path, **params):
        answer = self.client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path, status=200, **body):
        answer = self.client.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def state(self):
        return self.get("/api/state")

    def rested(self):
        """The state when nothing is being fitted any more and all answers have counted."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if self.session.learned:
                return self.state()
            time.sleep(0.02)
        raise AssertionError(self.session.refitter.failure or "it never ends")

    def say(self, labels, groups=None, since=None, status=200):
        since = self.session.journal.position if since is None else since
        return self.post("/api/answers", status, window=self.window, since=since, labels=labels, groups=groups or {})

    def labels(self):
        found = self.client.get("/api/labels/csv").text
        return {row["input"]: row["class"] for row in csv.DictReader(io.StringIO(found))}


@pytest.fixture
def reviewer(pile):
    with Reviewer(pile[0]) as found:
        yield found


def rows(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def group(state, name):
    return next(each for each in state["groups"] if each["name"] == name)


def swapped(reviewer):
    state = reviewer.state()
    names = "yellow", "violet"
    both = [{"ids": group(state, one)["surest"], "name": other} for one, other in (names, names[::-1])]
    return reviewer.say(both, {one: {"name": other} for one, other in (names, names[::-1])})


def test_swapping_two_names_settles_the_planted_mistake(reviewer, pile):
    place, truth = pile
    before = reviewer.labels()
    assert sum(before[file] == name for file, name in truth.items()) == len(truth) / 2
    swapped(reviewer)
    assert group(reviewer.state(), "yellow")["open"] is False
    state = reviewer.rested()
    assert reviewer.labels() == truth
    assert state["change"]["moved"] > 0
    assert state["forecast"]["first"]
    assert state["forecast"]["now"]
    assert {each["name"] for each in state["groups"] if each["open"]} == {"grey", EVIL}
    given = rows(place / "photographs" / "labels.csv")
    assert len(given) == 10
    assert all(truth[row["file"]] == row["class"] for row in given)


def test_undo_takes_everything_back(reviewer, pile):
    before, labels = reviewer.labels(), pile[0] / "photographs" / "labels.csv"
    swapped(reviewer)
    reviewer.say([{"ids": [3], "mark": "stranger"}])
    reviewer.rested()
    assert reviewer.post("/api/undo", window="w")["undone"]["ids"] == [3]
    assert set(reviewer.post("/api/undo", window="w")["undone"]["groups"]) == {"yellow", "violet"}
    assert reviewer.post("/api/undo", window="w")["undone"] is None
    reviewer.rested()
    assert reviewer.labels() == before
    assert rows(labels) == []


def test_another_day_goes_on(pile):
    place, truth = pile
    (place / "photographs" / "labels.csv").write_text("file,class\n")
    with Reviewer(place) as first:
        swapped(first)
        with refused("in-use"):
            Session(place / "run", {"data": str(place / "photographs"), "cache": str(place / "cache")})
        forecast = first.rested()["forecast"]["now"]
    with Reviewer(place, "v") as second:
        state = second.rested()
        assert state["forecast"]["now"] == forecast is not None
        assert second.labels() == truth
        assert state["answered"] == 10
        assert second.post("/api/undo", window="v")["undone"]["groups"]


def test_photographs_strangers_and_later(reviewer):
    doubt = reviewer.get("/api/photographs", show="all", count=5)
    assert (doubt["total"], len(doubt["photographs"])) == (32, 5)
    first, second = (each["id"] for each in doubt["photographs"][:2])
    assert doubt["photographs"][0]["likely"][0] == doubt["photographs"][0]["label"]
    reviewer.say([{"ids": [first], "mark": "stranger"}, {"ids": [second], "mark": "later"}])
    assert reviewer.state()["strangers"] == 1
    assert reviewer.labels()[doubt["photographs"][0]["file"]] == ""
    assert [each["id"] for each in reviewer.get("/api/photographs", show="doubt")["photographs"]][-1] == second
    assert [each["id"] for each in reviewer.get("/api/photographs", show="strangers")["photographs"]] == [first]
    size = group(reviewer.state(), "grey")["count"]
    said = reviewer.say([{"group": "grey", "mark": "stranger"}], {"grey": {"mark": "stranger"}})
    assert size - 2 <= said["photographs"] <= size


def test_two_windows_do_not_overwrite_each_other(reviewer):
    reviewer.say([{"ids": [0], "name": "grey"}])
    reviewer.window = "other"
    assert reviewer.say([{"ids": [0], "name": "yellow"}], since=0, status=409)["code"] == "answered"
    reviewer.say([{"ids": [1], "name": "yellow"}], since=0)
    assert reviewer.state()["answered"] == 2


def test_what_makes_no_sense_is_refused(reviewer):
    assert reviewer.say([{"ids": [10**6], "name": "grey"}], status=404)["code"] == "photograph-unknown"
    assert reviewer.say([{"ids": [-1], "name": "grey"}], status=404)["code"] == "photograph-unknown"
    assert reviewer.say([{"ids": [0], "name": "koala"}], status=404)["code"] == "class-missing"
    assert reviewer.say([{"group": "koala", "name": "grey"}], status=404)["code"] == "class-missing"
    assert reviewer.say([{"ids": [0]}], status=422)["code"] == "answer-empty"
    assert reviewer.say([{"ids": [0], "name": "grey", "mark": "later"}], status=422)["code"] == "answer-empty"
    assert reviewer.say([], status=422)["code"] == "answer-empty"
    assert reviewer.say([{"ids": [0], "mark": "odd"}], status=422)["code"] == "request"
    odd = "/static/../app.py /static/%2e%2e%2fapp.py /static/none.js /api/thumbnails/99999 /api/large/-1"
    odd += " /api/examples/0?name=.. /api/beside?name=x /api/photographs?count=9999"
    for path in odd.split():
        assert reviewer.client.get(path).status_code in (404, 422), path
    assert reviewer.session.journal.position == 0


def test_pictures_are_made_once_and_carry_nothing_but_pixels(reviewer, pile):
    small = reviewer.client.get("/api/thumbnails/0")
    assert Image.open(io.BytesIO(small.content)).size == (224, 224)
    kept = list((pile[0] / "run" / "review" / "thumbnails").rglob("*.jpg"))
    assert len(kept) == 1
    (pile[0] / "photographs" / "unlabelled" / reviewer.session.files[1]).write_bytes(b"no image")
    answer = reviewer.client.get("/api/thumbnails/1")
    assert (answer.status_code, answer.json()["code"]) == (404, "input-unreadable")
    assert reviewer.client.get("/api/large/0").headers["content-type"] == "image/jpeg"
    beside = reviewer.get("/api/beside", name=EVIL)
    assert beside["description"]
    assert reviewer.client.get("/api/examples/0", params={"name": beside["nearest"][0]["name"]}).status_code == 200


def test_a_class_is_tried_and_kept(reviewer, pile):
    # "yellow" of the description is what violet photographs look like; a copy of it takes some of them.
    attributes = {"red": 1, "green": 0.45, "blue": 0.05, "cyanish": 0, "pinkish": 0.55, "yellowish": 0.95}
    tried = reviewer.post("/api/classes/try", name="amber", attributes=attributes)
    assert tried["count"] == len(tried["photographs"]) == sum(count for _, count in tried["from"])
    assert "amber" not in {each["name"] for each in reviewer.state()["classes"]}
    assert reviewer.post("/api/classes/try", 400, name="grey", attributes=attributes)["code"]
    assert reviewer.post("/api/classes", 400, name="amber", text="Yellow.")["code"] == "description-missing"
    assert reviewer.post("/api/classes", 400, name="amber", attributes={"odd": 1})["code"] == "attribute-unknown"
    reviewer.post("/api/classes", 201, name="amber", attributes=attributes)
    end = time.monotonic() + 60
    while "amber" not in {each["name"] for each in reviewer.state()["classes"]} and time.monotonic() < end:
        time.sleep(0.02)
    reviewer.rested()
    assert "amber" in {each["name"] for each in reviewer.state()["classes"]}
    assert (pile[0] / "photographs" / "signatures.csv").read_text().endswith('"amber",1.0,0.45,0.05,0.0,0.55,0.95\n')


@pytest.mark.parametrize("form", ["jsonl", "label-studio", "fiftyone"])
def test_labels_in_other_formats(reviewer, form):
    answer = reviewer.client.get(f"/api/labels/{form}")
    assert "attachment" in answer.headers["content-disposition"]
    if form == "jsonl":
        assert len(answer.text.splitlines()) == 32
    else:
        assert len(json.loads(answer.text)["labels"] if form == "fiftyone" else json.loads(answer.text)) == 32


def test_the_new_run_is_an_ordinary_run(reviewer, pile):
    from pren.runs.reopening import load_result

    swapped(reviewer)
    written = reviewer.post("/api/runs", 201, sort=True)
    assert written["run"] == str(pile[0] / "run-2")
    found = load_result(pile[0] / "run-2")
    assert dict(zip(found.labels.inputs, found.labels.labels.tolist(), strict=True)) == pile[1]
    assert (pile[0] / "run-2" / "report.html").is_file()
    sorted_into = pile[0] / "run-2-sorted"
    assert len(list(sorted_into.rglob("*.png"))) == 32
    assert len(list((sorted_into / "grey").iterdir())) == 8


def test_the_same_address_predicts(reviewer, pile):
    photograph = pile[0] / "photographs" / "unlabelled" / "trip" / "photo_02.png"
    body = reviewer.client.post(
        "/predict?top=1", content=photograph.read_bytes(), headers={"content-type": "image/png"}
    )
    assert body.status_code == 200, body.text
    (guess,) = body.json()["predictions"][0]["classes"]
    assert guess["name"] == reviewer.labels()["trip/photo_02.png"]


def test_only_folders_of_photographs_can_be_reviewed(tmp_path, arrays):
    import numpy as np

    from pren.runs.run import run_config
    from pren.store.config import RunConfig

    np.savez(tmp_path / "data.npz", **arrays())
    config = RunConfig(data=str(tmp_path / "data.npz"), method="eszsl", rehearsals=0)
    run_config(config, tmp_path / "run", command="pren fit", report=False)
    with refused("no-photographs"):
        Session(tmp_path / "run")
