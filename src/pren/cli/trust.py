"""What is said about trust on the command line, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pren.trust import Forecast

Rehearsals = Annotated[
    int | None,
    typer.Option(
        "--rehearsals",
        min=0,
        help="How often the method is tried on held-out classes, to say how sure labels are; 0 for never.",
    ),
]
Precision = Annotated[
    float | None,
    typer.Option("--precision", metavar="SHARE", help="Label only so many that this share is right, such as 0.95."),
]


@dataclass(frozen=True)
class TrustChoice:
    """The options about how far labels can be trusted."""

    rehearsals: Rehearsals = None
    precision: Precision = None

    def settings(self) -> dict[str, Any]:
        """As settings of a configuration."""
        return {"rehearsals": self.rehearsals, "precision": self.precision}


def in_words(forecast: Forecast) -> str:
    """A forecast as a sentence or two."""
    low, high = int(100 * forecast.low), min(round(100 * forecast.high + 0.5), 100)
    count, classes = len(forecast.rehearsed), forecast.held_out
    said = (
        f"Expect {low} to {high} % of these labels to be right, if the unseen classes are as hard as the seen ones "
        f"({count} rehearsals, {classes} seen classes held out in each)."
    )
    if forecast.apart == 1.0:
        return said
    return f"{said} The unlabelled images look unlike the labelled ones, which makes this less certain."
