"""What the service takes at most, and a body that is read within those limits."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
from fastapi import Request
from PIL import Image
from starlette.types import Message

from pren.images.decoding import FORMATS
from pren.review.app import RefusedError

BODIES = 4  # of the largest size, in memory at once


@dataclass(frozen=True)
class Limits:
    """What the service takes at most.

    Attributes:
        bytes: Of the body of one request.
        pixels: Of one photograph.
        count: Inputs of one request.
        seconds: For a request to arrive, and then again for its answer.
        queue: Requests that are read or answered at a time; more are refused at once.
    """

    bytes: int = 32 << 20
    pixels: int = 50_000_000
    count: int = 64
    seconds: float = 30.0
    queue: int = 64


class Admission:
    """Counts the requests under way, so that a flood is refused before it fills the memory."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.requests = 0
        self.bytes = 0

    @contextmanager
    def admit(self, request: Request) -> Iterator[None]:
        """Hold a place for a request; a `RefusedError` if it is too large or there is no place."""
        limits = self.limits
        told = request.headers.get("content-length", "")
        size = int(told) if told.isascii() and told.isdigit() and len(told) < 20 else limits.bytes
        if size > limits.bytes:
            raise _too_large(limits)
        if self.requests >= limits.queue or self.bytes + size > BODIES * limits.bytes:
            raise RefusedError(503, "busy", "Too many requests at a time: try again soon.", {"Retry-After": "1"})
        self.requests, self.bytes = self.requests + 1, self.bytes + size
        try:
            yield
        finally:
            self.requests, self.bytes = self.requests - 1, self.bytes - size


async def read_body(request: Request, limits: Limits) -> Request:
    """The same request with its body in memory."""
    content = bytearray()
    try:
        with anyio.fail_after(limits.seconds):
            async for piece in request.stream():
                content += piece
                if len(content) > limits.bytes:
                    raise _too_large(limits)
    except TimeoutError as error:
        raise RefusedError(
            408, "too-slow", f"The request did not arrive within {limits.seconds:g} seconds: send less at a time."
        ) from error
    body = bytes(content)

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(request.scope, receive)


def check_count(count: int, limits: Limits) -> None:
    """Refuse no inputs, or too many."""
    if not count:
        raise RefusedError(422, "inputs-missing", "The request has no inputs: send photographs or features.")
    if count > limits.count:
        raise RefusedError(413, "too-many", f"The request has more than {limits.count} inputs: send fewer at a time.")


def check_picture(name: str, content: bytes, limits: Limits) -> None:
    """Refuse what is no photograph, or claims more pixels than allowed: only its first bytes are read."""
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            pixels = image.width * image.height
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        pixels = limits.pixels + 1
    except MemoryError:
        raise
    except Exception as error:  # damaged files make Pillow raise many undocumented exceptions
        raise unreadable(name) from error
    if pixels > limits.pixels:
        raise RefusedError(
            413, "too-many-pixels", f"{name} has more than {limits.pixels} pixels: make the photograph smaller."
        )


def unreadable(name: str) -> RefusedError:
    """The refusal of a damaged photograph."""
    kinds = ", ".join(FORMATS)
    return RefusedError(422, "input-unreadable", f"{name} cannot be read as an image: send a whole file ({kinds}).")


def _too_large(limits: Limits) -> RefusedError:
    return RefusedError(413, "too-large", f"The request has more than {limits.bytes} bytes: send less at a time.")
