"""The page: its files, and what it asks for and says."""

from __future__ import annotations

from importlib import resources
from typing import Annotated, Any, Literal

import anyio
from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from pren.review import facts
from pren.review.app import RefusedError
from pren.review.journal import Mark, Verdict
from pren.review.newclass import Described, keep_class, try_class
from pren.review.out import download, write_run
from pren.review.session import Session

TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
KEEP = {"Cache-Control": "private, max-age=86400"}
AT_ONCE = 4  # photographs that are decoded at a time
Name = Annotated[str, Field(min_length=1, max_length=2000)]
Window = Annotated[str, Field(min_length=1, max_length=64)]


class Said(BaseModel):
    """Photographs, or all of a group that have no answer yet, and what they are."""

    model_config = ConfigDict(extra="forbid")

    ids: list[int] = Field([], max_length=200_000)
    group: str | None = None
    name: str = ""
    mark: Mark = ""


class Answer(BaseModel):
    """What a person has said in one go."""

    model_config = ConfigDict(extra="forbid")

    window: Window
    since: int = Field(ge=0)
    labels: list[Said] = Field([], max_length=1000)
    groups: dict[Name, Said] = {}


class Undo(BaseModel):
    """Take back the last answer."""

    window: Window


class Out(BaseModel):
    """Write an ordinary run."""

    sort: bool = False


def page_router(session: Session) -> APIRouter:
    """Everything that the page asks for."""
    router = APIRouter()
    _add_files(router)
    _add_facts(router, session)
    _add_photographs(router, session)
    _add_answers(router, session)
    _add_results(router, session)
    return router


def _add_files(router: APIRouter) -> None:
    """The page itself."""

    @router.get("/", include_in_schema=False)
    async def index() -> Response:
        return _file("index.html")

    @router.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        return _file(name)


def _add_facts(router: APIRouter, session: Session) -> None:
    """What the page shows."""

    @router.get("/api/state")
    async def state(since: int = -1) -> dict[str, Any]:
        """The state of the review; only its revision if that is the one that is known."""
        if since == session.revision:
            return {"revision": since}
        return await anyio.to_thread.run_sync(facts.state, session)

    @router.get("/api/photographs")
    async def photographs(
        show: Literal["doubt", "class", "answered", "strangers", "all"] = "doubt",
        name: str = "",
        start: Annotated[int, Query(ge=0)] = 0,
        count: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> dict[str, Any]:
        """Some photographs and their labels."""
        return await anyio.to_thread.run_sync(facts.photographs, session, show, name, start, count)

    @router.get("/api/beside")
    async def beside(name: str) -> dict[str, Any]:
        """A class's description, and the seen classes that are nearest to it."""
        if name not in session.snapshot.table.names:
            raise _unknown(name)
        return facts.beside(session, name)


def _add_photographs(router: APIRouter, session: Session) -> None:
    """The photographs that it shows, as JPEG."""
    decoding = anyio.Semaphore(AT_ONCE)

    async def jpeg(make: Any, *given: Any) -> Response:
        async with decoding:
            content = await anyio.to_thread.run_sync(make, *given)
        return Response(content, media_type="image/jpeg", headers=KEEP)

    @router.get("/api/thumbnails/{place}", response_class=Response)
    async def thumbnail(place: int) -> Response:
        """A photograph, small."""
        return await jpeg(session.pictures.thumbnail, place)

    @router.get("/api/large/{place}", response_class=Response)
    async def large(place: int) -> Response:
        """A photograph, whole."""
        return await jpeg(session.pictures.large, place)

    @router.get("/api/examples/{place}", response_class=Response)
    async def example(place: int, name: str) -> Response:
        """A labelled photograph of a seen class."""
        return await jpeg(session.example, name, place)


def _add_answers(router: APIRouter, session: Session) -> None:
    """What a person says: labels, and classes that there were not."""

    @router.post("/api/answers")
    async def answers(said: Answer) -> dict[str, Any]:
        """Keep an answer."""
        files: dict[str, Verdict] = {}
        for each in said.labels:
            verdict = _verdict(session, each)
            for place in _meant(session, each):
                files[session.files[place]] = verdict
        groups = {name: _verdict(session, each) for name, each in said.groups.items()}
        if not files and not groups:
            raise RefusedError(422, "answer-empty", "The answer names no photograph and no group.")
        entry = await anyio.to_thread.run_sync(session.answer, said.window, files, groups, said.since)
        return {"position": entry.number, "photographs": len(files)}

    @router.post("/api/undo")
    async def undo(said: Undo) -> dict[str, Any]:
        """Take back the last answer of this window, or of an earlier session."""
        entry = await anyio.to_thread.run_sync(session.undo, said.window)
        if entry is None:
            return {"position": session.journal.position, "undone": None}
        ids = [session.place[name] for name in entry.files if name in session.place]
        return {"position": session.journal.position, "undone": {"ids": ids[:500], "groups": sorted(entry.groups)}}

    @router.post("/api/classes/try")
    async def try_out(new: Described) -> dict[str, Any]:
        """Which photographs a new class would catch; nothing is kept."""
        return await anyio.to_thread.run_sync(try_class, session, new)

    @router.post("/api/classes", status_code=201)
    async def keep(new: Described) -> dict[str, Any]:
        """Add a class to the data, and fit again."""
        await anyio.to_thread.run_sync(keep_class, session, new)
        return {"name": new.name}


def _add_results(router: APIRouter, session: Session) -> None:
    """What a person takes away: a table, or a run."""

    @router.get("/api/labels/{form}", response_class=Response)
    async def labels(form: Literal["csv", "jsonl", "label-studio", "fiftyone"]) -> Response:
        """The labels as a file."""
        name, content = await anyio.to_thread.run_sync(download, session, form)
        return Response(
            content,
            media_type="application/octet-stream",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    @router.post("/api/runs", status_code=201)
    async def runs(out: Out) -> dict[str, str | None]:
        """Fit once more into an ordinary run folder, and sort the photographs into folders if asked."""
        return await anyio.to_thread.run_sync(write_run, session, out.sort)


def _meant(session: Session, said: Said) -> list[int]:
    """The photographs of an answer."""
    if any(not 0 <= place < len(session.files) for place in said.ids):
        raise RefusedError(404, "photograph-unknown", "There is no such photograph.")
    if said.group is None:
        return said.ids
    names = session.snapshot.table.names
    if said.group not in names:
        raise _unknown(said.group)
    members = session.snapshot.members(names.index(said.group)).tolist()
    return said.ids + [place for place in members if session.journal.verdict(session.files[place]) is None]


def _verdict(session: Session, said: Said) -> Verdict:
    if bool(said.name) == bool(said.mark):
        raise RefusedError(422, "answer-empty", "An answer is a class or a mark.")
    if said.name and said.name not in session.snapshot.table.names:
        raise _unknown(said.name)
    return Verdict(said.name, said.mark)


def _unknown(name: str) -> RefusedError:
    return RefusedError(404, "class-missing", f"There is no class {name!r}.")


def _file(name: str) -> Response:
    """A file of the page: only those that are in the package."""
    folder = resources.files("pren.review") / "static"
    known = {entry.name: entry for entry in folder.iterdir() if entry.is_file()}
    if name not in known:
        raise RefusedError(404, "http", "Not Found.")
    kind = TYPES.get(name[name.rfind(".") :], "text/plain")
    return Response(known[name].read_bytes(), media_type=kind, headers={"Cache-Control": "no-cache"})
