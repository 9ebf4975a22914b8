"""``pren serve``: predict over HTTP."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from pren.cli.bundles import bundled
from pren.cli.options import Threads, WeightsFile, running_option
from pren.cli.output import Talk, say, show_log
from pren.foundation.allocation import share_memory
from pren.foundation.extras import need

TOKEN = "PREN_TOKEN"  # nosec B105: the name of a variable


@dataclass(frozen=True)
class Where:
    """Where to listen, and who may use it."""

    host: Annotated[
        str, typer.Option(metavar="NAME", help="Where to listen: a name or an address of this machine.")
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 8000
    name: Annotated[
        list[str] | None, typer.Option("--name", metavar="NAME", help="Another name that requests call it by. Repeat.")
    ] = None
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let all programs of this machine in, without a token.")
    ] = False


@dataclass(frozen=True)
class Most:
    """What one request may have, and how many there may be."""

    max_bytes: Annotated[int, running_option(min=1, help="Bytes of one request.")] = 32 << 20
    max_pixels: Annotated[int, running_option(min=1, help="Pixels of one photograph.")] = 50_000_000
    max_inputs: Annotated[int, running_option(min=1, help="Inputs of one request.")] = 64
    max_seconds: Annotated[float, running_option(min=0.1, help="Seconds for a request, and for its answer.")] = 30.0
    max_waiting: Annotated[int, running_option(min=1, help="Requests at a time; more are refused at once.")] = 64


@bundled
def serve(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a folder with a saved model.")],
    *,
    where: Where,
    weights: WeightsFile = None,
    most: Most,
    threads: Threads = None,
    talk: Talk,
) -> None:
    """Predict over HTTP, until Ctrl-C: photographs or features in, classes out.

    The token is that of the variable PREN_TOKEN, or a new one. Requests send it as 'Authorization: Bearer TOKEN'.
    """
    show_log(talk)
    for package in ("fastapi", "uvicorn", "prometheus_client", "python_multipart"):
        need(package, "review")
    from pren.review.admission import Limits
    from pren.review.guard import Access
    from pren.review.running import address, listen
    from pren.review.running import run as run_until_stopped
    from pren.review.serving import make_service

    access = Access.at(where.host, token=not where.no_token, names=where.name or ())
    if access.token is not None and os.environ.get(TOKEN):
        access = replace(access, token=os.environ[TOKEN])
    limits = Limits(most.max_bytes, most.max_pixels, most.max_inputs, most.max_seconds, most.max_waiting)
    share_memory()
    app = make_service(run, access, limits, weights)
    with closing(listen(where.host, where.port)) as listening:

        def told() -> None:
            say(f"Serving {run} at {address(listening)}; Ctrl-C stops.")
            if access.token is not None and TOKEN not in os.environ:
                say(f"Token: {access.token}")

        run_until_stopped(app, listening, told)
