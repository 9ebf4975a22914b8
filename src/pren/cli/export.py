"""``pren export``: a run's model as one file that is used without pren."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pren.cli.options import Json, check_new
from pren.cli.output import print_json, say, show_log
from pren.cli.trust import Precision
from pren.cli.vision import WeightsFile
from pren.foundation.errors import PrenError


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a folder with a saved model.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write it.")],
    format: Annotated[
        Literal["onnx", "torch"], typer.Option("--format", help="ONNX, or a program of torch.export (.pt2).")
    ] = "onnx",
    features: Annotated[
        bool, typer.Option("--features", help="Leave the frozen backbone out: features in, instead of images.")
    ] = False,
    weights: WeightsFile = None,
    precision: Precision = None,
    json: Json = False,
) -> None:
    """Write the model as one file, from images or features to scores, for use without pren."""
    show_log()
    check_new(out)
    from pren.label.export import export as write
    from pren.label.predictor import Predictor
    from pren.runs.store.folder import RunFolder

    folder = RunFolder(run)
    if folder.holds_run() and not folder.finished():
        raise PrenError(
            "run-unfinished", f"The run in {run} is not finished: 'pren fit --resume --out {run}' goes on with it."
        )
    facts = write(Predictor.load(run), out, format, weights=weights, from_features=features, precision=precision)
    if json:
        print_json({"out": str(out), "format": format, **facts})
        return
    taken = facts["input"]
    size = out.stat().st_size / 1e6
    say(f"{out} ({size:.1f} MB) takes {taken['type']} (N, {', '.join(map(str, taken['shape']))}), any N.")
    if "threshold" in facts:
        least, share = facts["threshold"], facts["precision"]
        say(f"Of labels with a confidence of {least:.3g} or more, {share:.0%} should be right.")
