"""Who may use the application.

A page of a foreign site runs in the same browser. It must not read or write here, by its own name (cross-origin) or by
a name that it points at this machine (DNS rebinding). So `Host` and `Origin` are checked, and every request needs the
token of the address, or the cookie that it was exchanged for.
"""

from __future__ import annotations

import html
import ipaddress
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pren.foundation.errors import PrenError

OPEN = frozenset({"/health"})  # what needs no token: watchdogs have none
READING = frozenset({"GET", "HEAD", "OPTIONS"})
AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?")
LOCAL = "localhost"

# A response may bring its own of these: a report has styles inside, a thumbnail may be kept.
USUAL = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
ALWAYS = {
    "Referrer-Policy": "no-referrer",  # the first address has the token in it
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Access:
    """Who may use the application.

    Attributes:
        token: What a request has to know; None if all that reach the address may use it.
        names: The names of this machine that requests may give as their `Host`.
        addresses: Whether they may also give any IP address: a foreign name cannot be pointed at those.
        session: What a browser gets in exchange for the token.
    """

    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(32))
    names: frozenset[str] = frozenset({LOCAL})
    addresses: bool = False
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @classmethod
    def at(cls, host: str, *, token: bool = True, names: Iterable[str] = ()) -> Access:
        """Access to an application that listens at `host`.

        Args:
            host: A name or an address of this machine.
            token: Whether a token is needed; it must be where other machines can reach the application.
            names: Other names of this machine that requests use.
        """
        here = is_loopback(host)
        if not here and not token:
            raise PrenError("token-needed", f"Other machines can reach {host}: leave out --no-token, or --host.")
        allowed = frozenset(name.lower() for name in (LOCAL, host, *names))
        return cls(secrets.token_urlsafe(32) if token else None, allowed, not here)

    def admits_host(self, host: str) -> bool:
        """Whether a `Host` header names this machine."""
        found = AUTHORITY.fullmatch(host)
        if found is None:
            return False
        name = found[1].strip("[]").lower()
        return name in self.names or (is_address(name) if self.addresses else is_address(name) and is_loopback(name))

    def knows(self, token: str) -> bool:
        """Whether this is the token."""
        return self.token is None or _same(token, self.token)


def is_address(name: str) -> bool:
    """Whether it is an IP address rather than a name."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return ipaddress.ip_address(host).is_loopback if is_address(host) else host.lower() == LOCAL


class Guard:
    """Refuses what may not use the application, and gives all answers the headers that keep others out."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in USUAL.items():
                    headers.setdefault(name, value)
                headers.update(ALWAYS)
            await send(message)

        headers = Headers(scope=scope)
        answer = self._answer(scope, headers) or self.app
        await answer(scope, receive, send_guarded)

    def _answer(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a request that goes no further; None if it may."""
        access, host, method = self.access, headers.getlist("host"), scope["method"]
        if len(host) != 1 or not access.admits_host(host[0]):
            return _refusal(headers, 421, "host", "This address is not a name of this machine: use the one printed.")
        if _is_foreign(headers, method, host[0]):
            return _refusal(headers, 403, "origin", "Another site's page may not use this address.")
        if access.token is None or scope["path"] in OPEN:
            return None
        kind, _, told = headers.get("authorization", "").partition(" ")
        if told and kind.lower() == "bearer" and access.knows(told.strip()):
            return None
        cookie = f"pren-{(AUTHORITY.fullmatch(host[0]) or '')[2] or 80}"  # browsers share cookies between ports
        if _same(cookie_parser(headers.get("cookie", "")).get(cookie, ""), access.session):
            if method in READING or "origin" in headers or "sec-fetch-site" in headers:
                return None
            return _refusal(headers, 403, "origin", "The request does not say which page it comes from.")
        if method == "GET" and scope["path"] == "/":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
            if access.knows(given):
                # The token leaves the address line, and so histories and bookmarks.
                entered = Response(status_code=303, headers={"Location": "/"})
                entered.set_cookie(cookie, access.session, httponly=True, samesite="strict")
                return entered
        return _refusal(headers, 401, "token", "This address needs its token: open the address that pren has printed.")


def _is_foreign(headers: Headers, method: str, host: str) -> bool:
    """Whether a page of another site has sent the request."""
    if any(_authority(origin) != host.lower() for origin in headers.getlist("origin")):
        return True
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    # A link on another site may lead here: its page reads nothing.
    opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return not (opened and method in READING)


def _authority(origin: str) -> str:
    """The host and port of an origin; "" if it has none. A proxy in front may speak https."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return ""
    return parts.netloc.lower() if parts.scheme in ("http", "https") else ""


def _same(given: str, known: str) -> bool:
    """Compare in a time that does not tell how much is right."""
    return secrets.compare_digest(given.encode(), known.encode())


def _refusal(headers: Headers, status: int, code: str, message: str) -> Response:
    extra = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if "text/html" not in headers.get("accept", ""):
        return JSONResponse({"code": code, "message": message}, status, extra)
    # A browser keeps the cookie back when another site's link was followed; the link here is one of our own.
    again = "<p><a href='/'>Go on</a> if you have just opened it.</p>" if status == 401 else ""
    page = f"<!doctype html><html lang=en><title>pren</title><h1>No access</h1><p>{html.escape(message)}</p>{again}"
    return HTMLResponse(page, status, extra)
