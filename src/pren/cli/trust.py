"""What is said about trust on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

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
