"""What is said to a server while it may be killed. What it has acknowledged must be there when it is started again."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from campaigns.crash.forks import Forked
from campaigns.fuzz.templates import problem

ADDRESS = re.compile(r"(http://[\d.]+:\d+)")
TOKEN = re.compile(r"(?:token=|Token: )(\S+)")
SECONDS = 120.0  # in which a server has to speak, or to learn from all answers
HEARD = "heard.jsonl"  # in the folder of a job: what was acknowledged
LABELS = "labels.json"  # there: what a review ends with
FEATURES = [{"features": row} for row in problem()["pool"].tolist()]
YES, NO = {"name": "b"}, {"name": "a"}
ANSWERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("answers", {"labels": [{"ids": [0], **YES}]}),
    ("answers", {"labels": [{"ids": [1], **NO}, {"ids": [4], "mark": "stranger"}]}),
    ("undo", {}),
    ("answers", {"labels": [{"ids": [1], **NO}], "groups": {"a": NO}}),
    ("answers", {"labels": [{"ids": [2, 0], "mark": "open"}]}),
    ("answers", {"labels": [{"ids": [3], **NO}, {"ids": [4], **YES}]}),
)
Talk = Callable[[httpx.Client, Path], str]  # returns what went wrong; "" for nothing


def talk(process: Forked, log: Path, place: Path, say: Talk) -> str:
    """Talk to a server until all is said, and stop it, or until it is dead; returns what went wrong."""
    end = time.monotonic() + SECONDS
    while not (address := ADDRESS.search(log.read_text())) or not (token := TOKEN.search(log.read_text())):
        if process.poll() is not None or time.monotonic() > end:
            return ""  # which the campaign sees by its end
        time.sleep(0.005)
    with (
        suppress(httpx.TransportError),  # the server is dead
        httpx.Client(base_url=address[1], headers={"Authorization": f"Bearer {token[1]}"}, timeout=SECONDS) as client,
    ):
        fault = say(client, place)
        process.stop()
        return fault
    return ""


def heard(place: Path) -> list[Any]:
    """What was acknowledged so far."""
    path = place / HEARD
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def predict(client: httpx.Client, place: Path) -> str:
    """Ask for labels, one request after the other."""
    for body in FEATURES[len(heard(place)) :]:
        answer = client.post("/predict", json=body)
        if answer.status_code != 200:
            return f"a request got {answer.status_code}: {answer.text}"
        _hear(place, answer.json())
    return ""


def review(client: httpx.Client, place: Path) -> str:
    """Give the answers that are not kept yet, and wait until all are learned."""
    acknowledged, kept = len(heard(place)), client.get("/api/state").json()["position"]
    if kept not in (acknowledged, acknowledged + 1):  # the last one may be kept, but not acknowledged
        return f"{acknowledged} answers were acknowledged, but {kept} are kept"
    if kept > acknowledged:
        _hear(place, kept)
    client.get("/api/thumbnails/0")  # writes a file, too
    for number, (path, said) in enumerate(ANSWERS[kept:], start=kept):
        body = {"window": "w", **said, **({"since": number} if path == "answers" else {})}
        answer = client.post(f"/api/{path}", json=body)
        if answer.json().get("position") != number + 1:
            return f"answer {number + 1} got {answer.status_code}: {answer.text}"
        _hear(place, number + 1)
    end = time.monotonic() + SECONDS
    while not (state := client.get("/api/state").json())["learned"]:
        if time.monotonic() > end or state["doing"] == "failed":
            return f"the answers were not learned: {state['failure']}"
        time.sleep(0.05)
    labels = client.get("/api/labels/csv").text
    (place / LABELS).write_text(json.dumps({"labels": labels, "forecast": state["forecast"]["now"]}))
    return ""


def _hear(place: Path, content: Any) -> None:
    with (place / HEARD).open("a") as file:
        file.write(json.dumps(content) + "\n")
