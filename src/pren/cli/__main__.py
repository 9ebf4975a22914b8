"""``pren``: the entry point, and the exit code of every error.

0 done, 1 a defect of pren (with its traceback), 2 an error that the user can correct (one message), 130 interrupted.
"""

from __future__ import annotations

import signal
import sys
from _thread import interrupt_main
from threading import Timer
from typing import cast

import typer

from pren.cli import (
    classes,
    compare,
    data,
    demo,
    evaluate,
    export,
    extract,
    fit,
    forecast,
    listing,
    predict,
    report,
    reproduce,
    review,
    serve,
    show,
    suggest,
    tune,
)
from pren.cli.ending import explained, written
from pren.cli.launch import leave, speaks_for_its_machine
from pren.cli.output import PIPE_CLOSED, complain
from pren.cli.room import check_room
from pren.foundation.allocation import keep_memory
from pren.foundation.errors import PrenError, SharedError, visible
from pren.foundation.version import __version__

UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])  # typer does not export it

RESEND_AFTER = 0.05  # seconds

app = typer.Typer(
    name="pren",
    help="Zero-shot image recognition: label photographs of classes that have no labelled ones.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        typer.echo(f"pren {__version__}")
        raise typer.Exit
    if "--help" not in sys.argv:
        check_room()


app.command("demo")(demo.demo)
app.command("fit")(fit.fit)
app.command("forecast")(forecast.forecast)
app.command("extract")(extract.extract)
app.command("tune")(tune.tune)
app.command("compare")(compare.compare)
app.command("reproduce")(reproduce.reproduce)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("export")(export.export)
app.command("report")(report.report)
app.command("suggest")(suggest.suggest)
app.command("review")(review.review)
app.command("serve")(serve.serve)
app.command("list")(listing.list_names)
app.command("show")(show.show)
app.add_typer(classes.app)
app.add_typer(data.app)


def main() -> None:
    """Run the command line."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # `pren.cli` has set another for the imports
    keep_memory()
    before, sys.unraisablehook = sys.unraisablehook, resend_interrupt
    try:
        leave(written(_exit_code()))
    finally:
        sys.unraisablehook = before


def resend_interrupt(lost: sys.UnraisableHookArgs) -> None:
    """Send an interrupt again if it came in a destructor, where it cannot be caught; report other exceptions."""
    if lost.exc_type is KeyboardInterrupt:
        Timer(RESEND_AFTER, interrupt_main).start()  # raised here, it would be lost again
    else:
        sys.__unraisablehook__(lost)


def _exit_code() -> int:
    try:
        return int(app(standalone_mode=False) or 0)
    except UsageError as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # whose message is the help; asking for that prints it
            said = visible(" ".join(error.format_message().split()))
            error.format_message = lambda: said  # type: ignore[method-assign]  # `show` calls it
        error.show()
        return int(error.exit_code)
    except SystemExit as end:
        if isinstance(end.code, str):
            complain("ended", end.code)
            return 1
        if isinstance(end.__context__, BrokenPipeError):  # rich and typer end with 1
            return PIPE_CLOSED
        return end.code or 0
    except PrenError as error:
        if speaks_for_its_machine() or not isinstance(error, SharedError):
            complain(error.code, str(error))
        return 2
    except (OSError, MemoryError, RuntimeError, ImportError) as error:  # such as a full disk, or no more memory
        if (code := explained(error)) is None:
            raise
        return code
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    main()
