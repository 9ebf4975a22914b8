"""``pren forecast``: what to expect before anybody labels anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pren.cli import options
from pren.cli.bundles import bundled
from pren.cli.options import DataChoice, Json
from pren.cli.output import percent, print_json, say, show_log, stderr, stdout, table
from pren.cli.progress import extraction
from pren.cli.progress import rehearsals as rehearsing
from pren.cli.trust import Rehearsals
from pren.cli.vision import BackboneChoice

if TYPE_CHECKING:
    from rich.table import Table

    from pren.runs.config import RunConfig
    from pren.runs.outlook import Outlook


@bundled
def forecast(
    data: Annotated[str, options.Data],
    *,
    chosen: DataChoice,
    vision: BackboneChoice,
    method: options.MethodName = None,
    assignments: options.Assignments = None,
    rehearsals: Rehearsals = None,
    threads: options.Threads = None,
    json: Json = False,
) -> None:
    """Say how many labels will be right: seen classes are held out and play the unseen ones."""
    show_log()
    given = {"data": data, "method": method, "rehearsals": rehearsals, **chosen.settings()}
    config = options.build_config(given, chosen.options(), options.parse_assignments(assignments or []))
    found = _outlooks(config, vision)
    if json:
        print_json([{"method": _name(each.config), **each.forecast.model_dump(mode="json")} for each in found])
        return
    if len(found) > 1:
        stdout().print(_table(found))
    say(found[0].forecast.in_words())


def chosen_method(config: RunConfig, vision: BackboneChoice, quiet: bool = False) -> RunConfig:
    """A configuration with what was said about photographs; "auto" becomes the method with the best forecast."""
    from pren.runs.outlook import AUTO

    if config.method != AUTO:
        return vision.applied(config)
    found = _outlooks(config, vision, quiet)
    if not quiet:
        stderr().print(_table(found))
    return found[0].config


def _outlooks(config: RunConfig, vision: BackboneChoice, quiet: bool = False) -> list[Outlook]:
    from pren.runs.outlook import candidates, outlooks

    names = [part.method for part in candidates(config)]
    with extraction(quiet) as on_extract, rehearsing(quiet) as on_rehearsal:
        return outlooks(vision.applied(config, names), on_extract, on_rehearsal)


def _table(found: list[Outlook]) -> Table:
    rows = [
        (_name(each.config), percent(each.forecast.low), percent(each.forecast.high), percent(each.rehearsed))
        for each in found
    ]
    return table(["expected right (per cent)", "from", "to", "in rehearsals"], rows)


def _name(config: RunConfig) -> str:
    """A method, and the parameters that are not its defaults."""
    from pren.methods.registry import METHODS

    entry = METHODS[config.method]
    defaults = {name: param.default for name, param in entry.method.params.items()} | dict(entry.preset)
    own = [f"{name}={value}" for name, value in config.params.items() if value != defaults[name]]
    return " ".join([entry.name, *own])
