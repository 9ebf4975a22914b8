"""``pren review``: settle the labels of a run in a browser."""

from __future__ import annotations

import webbrowser
from contextlib import closing
from typing import Annotated

import typer

from pren.cli.bundles import bundled
from pren.cli.options import RunData, RunPath, Threads, command_line
from pren.cli.output import Talk, say, show_log
from pren.foundation.allocation import share_memory
from pren.foundation.extras import need


@bundled
def review(
    run: RunPath,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; by default a free one.")] = 0,
    *,
    where: RunData,
    threads: Threads = None,
    talk: Talk,
) -> None:
    """Settle the labels of a run in a browser: names of groups first, then photographs in doubt.

    Every answer is kept at once, in labels.csv of the data. Ctrl-C ends; the same command goes on.
    """
    show_log(talk)
    for package in ("fastapi", "uvicorn", "prometheus_client", "python_multipart"):
        need(package, "review")
    from pren.review.guard import Access
    from pren.review.reviewing import make_review
    from pren.review.running import address, listen
    from pren.review.running import run as run_until_stopped
    from pren.review.session import Session

    access = Access.at("127.0.0.1")
    share_memory()
    with (
        closing(listen("127.0.0.1", port)) as listening,
        closing(Session(run, where.said(), command_line())) as session,
    ):
        link = f"{address(listening)}/?token={access.token}"

        def told() -> None:
            say(f"Reviewing {run}: {link}")
            say("Ctrl-C ends. Answers are kept at once.")
            if not no_browser:
                webbrowser.open(link)

        run_until_stopped(make_review(session, access), listening, told)
