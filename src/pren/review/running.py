"""Run an application until it is told to stop."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from pren.foundation.errors import PrenError

PATIENCE = 60  # seconds for requests that were accepted, after a signal to stop
STOPPING = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """Says when it answers."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_start()


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 means a free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family)
        # The connections inherit it. Without, an answer waits 40 ms for the receipt of its headers.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, UnicodeError) as error:
        raise PrenError("address", f"Cannot listen at {host}, port {port} ({error}): choose another --port.") from error


def address(listening: socket.socket) -> str:
    """The address that a browser opens, such as ``http://127.0.0.1:8000``."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # nosec B104: read, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(app: FastAPI, listening: socket.socket, on_start: Callable[[], None]) -> None:
    """Answer requests until Ctrl-C or SIGTERM; then answer those that were accepted, and return.

    Args:
        app: What answers.
        listening: Where, of `listen`. It is closed at the end.
        on_start: Called when requests are answered.
    """
    config = uvicorn.Config(
        app,
        log_config=None,  # logging belongs to the program
        access_log=False,  # addresses hold the token
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE,
    )
    # Uvicorn sends a signal again when it has stopped. A graceful stop is no failure.
    before = {number: signal.signal(number, _ignore) for number in STOPPING}
    try:
        _Server(config, on_start).run([listening])
    finally:
        listening.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore(number: int, frame: object) -> None:
    """A handler that does nothing. `SIG_IGN` would be passed on to children."""
