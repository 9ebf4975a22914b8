"""Where an application listens."""

from __future__ import annotations

import socket
from contextlib import closing

from refusals import refused

from pren.review.running import address, listen


def test_a_free_port_is_found_and_a_taken_one_is_refused():
    with closing(listen("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        assert first.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert address(first) == f"http://127.0.0.1:{port}"
        with refused(f"address {port}"):
            listen("127.0.0.1", port)


def test_an_address_that_is_none_is_refused():
    with refused("address"):
        listen("no such name", 0)


def test_every_address_is_opened_as_this_machine():
    with closing(listen("0.0.0.0", 0)) as everywhere:
        assert address(everywhere).startswith("http://127.0.0.1:")
