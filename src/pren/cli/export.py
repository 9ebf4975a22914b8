"""``pren export``: write a model as one file that runs without pren."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pren.cli.bundles import bundled
from pren.cli.options import Json, WeightsFile, check_new
from pren.cli.output import Talk, print_json, say, show_log
from pren.foundation.errors import PrenError


@bundled
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a folder with a saved model.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    format: Annotated[
        Literal["onnx", "torch"], typer.Option("--format", help="ONNX, or torch.export (.pt2).")
    ] = "onnx",
    from_features: Annotated[
        bool, typer.Option("--from-features", help="Leave the frozen backbone out: the file takes features.")
    ] = False,
    weights: WeightsFile = None,
    min_accuracy: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Store the confidence from which on this share of the labels is right."),
    ] = None,
    *,
    json: Json = False,
    talk: Talk,
) -> None:
    """Write a model as one file that runs without pren, from photographs or features to scores."""
    show_log(talk)
    check_new(out)
    from pren.label.export import export as write
    from pren.label.predictor import Predictor
    from pren.store.folder import RunFolder

    folder = RunFolder(run)
    if folder.holds_run() and not folder.finished():
        raise PrenError("run-unfinished", f"The run in {run} is not finished: go on with 'pren fit --resume {run}'.")
    facts = write(
        Predictor.load(run), out, format, weights=weights, from_features=from_features, min_accuracy=min_accuracy
    )
    if json:
        print_json({"out": str(out), "format": format, **facts})
        return
    taken = facts["input"]
    size = out.stat().st_size / 1e6
    say(f"{out} ({size:.1f} MB) takes {taken['type']} (N, {', '.join(map(str, taken['shape']))}), any N.")
    if "threshold" in facts:
        least, share = facts["threshold"], facts["min_accuracy"]
        say(f"Of labels with a confidence of {least:.3g} or more, {share:.0%} should be right.")
