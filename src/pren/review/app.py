"""The application: routers behind the guard, and errors as sentences."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from pren.foundation.errors import PrenError, visible
from pren.foundation.version import __version__
from pren.review.guard import Access, Guard


class Fault(BaseModel):
    """Why a request was refused: a short name that never changes, and a sentence."""

    code: str
    message: str


class RefusedError(PrenError):
    """A refusal that has a status and perhaps headers of its own; any other `PrenError` is a bad request (400)."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(code, message)
        self.status = status
        self.headers = headers


def make_app(
    access: Access, routers: Sequence[APIRouter], running: Sequence[AbstractAsyncContextManager[object]] = ()
) -> FastAPI:
    """The application with everything that `routers` answer.

    Args:
        access: Who may use it.
        routers: The service, the page.
        running: What runs as long as the application does; the first is entered first and left last.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for one in running:
                await stack.enter_async_context(one)
            yield

    token = HTTPBearer(auto_error=False, description="The token that pren has printed.")  # the guard checks it
    app = FastAPI(
        title="pren",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # its page would fetch scripts from another host
        redoc_url=None,
        dependencies=[Security(token)],
        responses={status: {"model": Fault} for status in (400, 401, 403, 421, 422)},
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    for router in routers:
        app.include_router(router)
    app.add_middleware(Guard, access=access)
    app.add_exception_handler(PrenError, _refuse)
    app.add_exception_handler(RequestValidationError, _explain)
    app.add_exception_handler(HTTPException, _name)
    app.add_exception_handler(Exception, _own_up)
    return app


def _fault(status: int, code: str, message: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"code": code, "message": visible(message)}, status, headers)


def _refuse(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PrenError)
    own = error if isinstance(error, RefusedError) else None
    return _fault(own.status if own else 400, error.code, str(error), own and own.headers)


def _explain(_: Request, error: Exception) -> JSONResponse:
    """What pydantic says of a request, as one sentence."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = " ".join(str(part) for part in first["loc"][1:]) or "the request"
    return _fault(422, "request", f"{where}: {first['msg']}.")


def _name(_: Request, error: Exception) -> JSONResponse:
    """Such as an address that does not exist."""
    assert isinstance(error, HTTPException)
    return _fault(error.status_code, "http", f"{error.detail}.", error.headers)


def _own_up(_: Request, __: Exception) -> JSONResponse:
    """A defect of ours; Starlette logs it with its traceback."""
    return _fault(500, "defect", "pren has a defect: its log says more.")
