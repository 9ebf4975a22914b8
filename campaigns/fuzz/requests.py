"""Mutated requests to the service and to the review page, in this process."""

from __future__ import annotations

import io
import json
import os
import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from fastapi.testclient import TestClient
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from PIL import Image

from campaigns.fuzz.command import REFUSED, SUCCESS, changes, limited, snapshot
from campaigns.fuzz.mutations import BYTE_EDITS, JSON_EDITS, ByteEdit, StructureEdit
from campaigns.fuzz.templates import Workshop, problem
from pren.data.folder.labels import LABELS, read_given
from pren.review.admission import Limits
from pren.review.app import make_app
from pren.review.guard import Access
from pren.review.journal import Journal
from pren.review.page import page_router
from pren.review.serving import service_of
from pren.review.session import FOLDER, Session

HERE = "http://127.0.0.1:8000"
RUN = {"run": "none", "labels": "", "report": None, "sorted": None}  # a real one takes a process and seconds


def _picture() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (6, 5), (9, 200, 9)).save(out, "PNG")
    return out.getvalue()


FORM = b'--x\r\nContent-Disposition: form-data; name="images"; filename="a.png"\r\n\r\n' + _picture() + b"\r\n--x--\r\n"
SAID = {"labels": [{"ids": [0, 1], "name": "b"}, {"group": "a", "mark": "stranger"}], "groups": {"b": {"name": "a"}}}
NEW = {"name": "c", "attributes": {"red": 1, "green": 0.5}}
# A method, an address, and what is sent: JSON, or bytes of the kind that is named.
WHOLE: tuple[tuple[str, str, Any, str], ...] = (
    ("POST", "/api/answers", {"window": "w", "since": 0, **SAID}, ""),
    ("POST", "/api/answers", {"window": "v", "since": 0, "labels": [{"ids": [2], "mark": "open"}]}, ""),
    ("POST", "/api/undo", {"window": "w"}, ""),
    ("POST", "/api/classes/try", NEW, ""),
    ("POST", "/api/classes", {**NEW, "attributes": {"red": 1, "green": 0.5, "blue": 0}}, ""),
    ("POST", "/api/runs", {"sort": True}, ""),
    ("POST", "/predict?top=2", {"features": problem()["pool"].tolist()}, ""),
    ("POST", "/predict?among=all", _picture(), "image/png"),
    ("POST", "/predict", FORM, "multipart/form-data; boundary=x"),
    ("POST", "/classes", {"name": "c", "descriptions": [], "attributes": {"red": 1}}, ""),
    ("GET", "/api/photographs?show=all&name=a&start=0&count=5", None, ""),
    ("GET", "/api/state?since=0", None, ""),
    ("GET", "/api/beside?name=a", None, ""),
    ("GET", "/api/examples/0?name=g", None, ""),
    ("GET", "/api/thumbnails/0", None, ""),
    ("GET", "/api/labels/csv", None, ""),
    ("GET", "/static/app.js", None, ""),
)
HEADERS = (
    *(("content-length", "-1"), ("content-length", "9" * 30), ("transfer-encoding", "x"), ("host", "evil.example")),
    *(("origin", "http://evil.example"), ("origin", "null"), ("host", "[::1"), ("cookie", "pren-8000=\xff")),
    *(("content-type", "application/json"), ("content-type", "multipart/form-data"), ("content-type", "\xff")),
    *(
        ("accept", "text/html"),
        ("authorization", "Bearer \xe9"),
        ("sec-fetch-site", "cross-site"),
        ("range", "bytes=-"),
    ),
)


@dataclass(frozen=True)
class Sent:
    """A request: which of `WHOLE`, and what happened to its address, its JSON, its bytes and its headers."""

    which: int
    address: ByteEdit | None
    edits: tuple[StructureEdit, ...]
    content: ByteEdit | None
    headers: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Case:
    """Requests to a review, beside which the model of a run on photographs ("own") or features ("eszsl") predicts."""

    run: str
    sent: tuple[Sent, ...]


_SENT = st.builds(
    Sent,
    st.integers(0, len(WHOLE) - 1),
    st.none() | st.none() | BYTE_EDITS,
    st.lists(JSON_EDITS, max_size=2).map(tuple),
    st.none() | st.none() | BYTE_EDITS,
    st.just(()) | st.just(()) | st.lists(st.sampled_from(HEADERS), max_size=2).map(tuple),
)
CASES: SearchStrategy[Case] = st.builds(
    Case, st.sampled_from(["own", "own", "eszsl"]), st.lists(_SENT, min_size=1, max_size=3).map(tuple)
)


def check(workshop: Workshop, case: Case) -> str:
    """Send the requests; what was acknowledged has to be there when the review is opened again."""
    place = workshop.fresh()
    run, data = place / "run", place / "mine"
    shutil.copytree(workshop.template("own"), run, ignore=shutil.ignore_patterns(FOLDER))
    shutil.copytree(workshop.photographs, data)
    inputs, before = (run, data), snapshot(run, data)
    moved = {"data": str(data), "cache": str(workshop.path / "cache")}
    with (
        limited(),
        mock.patch.object(os, "fsync", return_value=None),
        mock.patch("pren.review.page.write_run", return_value=RUN),
        closing(Session(run, moved)) as session,
    ):
        routers, batcher = service_of(workshop.template(case.run), Limits(), None)
        app = make_app(Access(token=None), [page_router(session), *routers], [session, batcher])
        with TestClient(app, base_url=HERE) as client:
            kept = [_send(client, sent) for sent in case.sent]
        verdicts = session.journal.verdicts()
    changed = {Path(path).relative_to(place) for path in changes(before, snapshot(*inputs))}
    tables = {Path("mine", LABELS), Path("mine", "signatures.csv")}
    assert all(path in tables or path.parts[:2] == ("run", FOLDER) for path in changed), f"it has changed {changed}"
    again = Journal(run / FOLDER)
    again.close()
    position = sum(acknowledged for _, acknowledged in kept)
    assert again.position == position, f"{position} answers were acknowledged and {again.position} are kept"
    assert again.verdicts() == verdicts, "the journal says something else when it is read again"
    given = dict(read_given(data))
    said = {name: verdict.name for name, verdict in verdicts.items() if verdict.name}
    assert said.items() <= given.items(), f"of {said} the labels of the data are {given}"
    return SUCCESS if all(fine for fine, _ in kept) else REFUSED


def _send(client: TestClient, sent: Sent) -> tuple[bool, bool]:
    """Send a request; returns whether it was answered, and whether an entry of the journal was acknowledged."""
    method, address, body, kind = WHOLE[sent.which]
    if body is not None and not isinstance(body, bytes):
        for edit in sent.edits:
            body = edit.apply(body) if isinstance(body, (dict, list)) and body else body
        body = _as_json(body)
    if sent.address is not None:
        edited = sent.address.apply(address.encode()).decode("latin-1")
        address = "/" + "".join(character for character in edited if character.isprintable()).lstrip("/")
    content = body if sent.content is None or body is None else sent.content.apply(body)
    headers = {"content-type": kind or "application/json", **dict(sent.headers)}
    encoded = {name.encode("latin-1"): value.encode("latin-1") for name, value in headers.items()}
    answer = client.request(method, address, content=content, headers=encoded)
    assert answer.status_code < 500, f"{method} {address} got {answer.status_code}: {answer.text}"
    assert answer.headers["x-content-type-options"] == "nosniff"
    if answer.status_code >= 400 and "text/html" not in answer.headers.get("content-type", ""):
        fault = answer.json()
        assert set(fault) == {"code", "message"}, fault
        assert fault["message"].isprintable(), f"raw control characters: {fault['message']!r}"
    told = answer.json() if answer.status_code == 200 and address.startswith("/api/") and method == "POST" else {}
    return answer.status_code < 400, "position" in told and told.get("undone", True) is not None


def _as_json(content: Any) -> bytes:
    try:
        return json.dumps(content).encode()
    except (RecursionError, ValueError):  # a value that has no JSON
        return b"[" * 100_000
