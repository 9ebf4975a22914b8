"""``pren forecast``: forecast how many labels will be right."""

from __future__ import annotations

from typing import Annotated

from pren.cli import options
from pren.cli.bundles import bundled
from pren.cli.options import BackboneChoice, DataChoice, Json, settings_of
from pren.cli.output import Talk, percent, print_json, say, show_log, stdout, table
from pren.cli.progress import extraction
from pren.cli.progress import rehearsals as rehearsing


@bundled
def forecast(
    data: Annotated[str, options.Data],
    *,
    json: Json = False,
    talk: Talk,
    chosen: DataChoice,
    vision: BackboneChoice,
    method: options.MethodName = None,
    assignments: options.Assignments = None,
    rehearsals: options.Rehearsals = None,
    threads: options.Threads = None,
) -> None:
    """Forecast how many labels will be right, by tests on held-out seen classes."""
    show_log(talk)
    from pren.runs.outlook import outlooks

    settings = settings_of(chosen, vision, data=data, method=method, rehearsals=rehearsals, assignments=assignments)
    with extraction(talk.quiet) as on_extract, rehearsing(talk.quiet) as on_rehearsal:
        found = outlooks(settings, settings.finding(), on_extract, on_rehearsal)
    if json:
        print_json([{"method": each.name, **each.forecast.model_dump(mode="json")} for each in found])
        return
    if len(found) > 1:
        rows = [
            (each.name, percent(each.forecast.low), percent(each.forecast.high), percent(each.rehearsed))
            for each in found
        ]
        stdout().print(table(["expected right (per cent)", "from", "to", "in rehearsals"], rows))
    say(found[0].forecast.sentence())
