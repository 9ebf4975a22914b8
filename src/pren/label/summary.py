"""Labels in figures: how sure they are, how many each class has, and which classes to check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

import numpy as np
from pydantic import BaseModel, ConfigDict

from pren.label.predictions import Predictions
from pren.problem import UNKNOWN, Setting
from pren.trust import STRANGE
from pren.trust.confidence import LIKELY, SURE, LevelCounts
from pren.trust.names import odd_sizes

FEW_NAMES = 5
MOST_COUNTS = 30


class LabelSummary(BaseModel):
    """Labels in figures.

    Attributes:
        inputs: The number of inputs.
        unreadable: How many cannot be read.
        unlabelled: How many have no label because none is sure enough.
        per_class: The number of labels of each candidate, the largest first.
        empty: Candidates without a label.
        crowded: Unseen classes with so many labels that another class may be among them.
        few: Unseen classes with so few labels that most may be among others.
        levels: How many labels are sure, likely and doubtful; None if confidence is not known.
        strange: Inputs that are like none of the classes, the strangest first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    inputs: int
    unreadable: int
    unlabelled: int
    per_class: dict[str, int]
    empty: tuple[str, ...]
    crowded: tuple[str, ...]
    few: tuple[str, ...]
    levels: LevelCounts | None
    strange: tuple[str, ...]

    @classmethod
    def of(cls, labels: Predictions, setting: Setting) -> LabelSummary:
        """Count. Seen classes have labelled inputs, which keep them from taking others: their numbers say nothing."""
        table, best = labels.table, labels.classes[:, 0]
        unreadable = np.array([bool(error) for error in labels.errors], dtype=bool)
        labelled = best != UNKNOWN
        counts = Counter(labels.labels[labelled].tolist())
        groups = [[name for name, seen in zip(table.names, table.seen, strict=True) if not seen]]
        if setting == "gzsl":
            groups.append([name for name, seen in zip(table.names, table.seen, strict=True) if seen])
        candidates = [name for group in groups for name in group]
        sizes = np.array([counts[name] for name in groups[0]], dtype=np.int64)
        large, small = odd_sizes(sizes)
        crowded, few = ([name for name, is_odd in zip(groups[0], odd, strict=True) if is_odd] for odd in (large, small))
        strange = np.flatnonzero(labels.familiarity < STRANGE)
        strangest = strange[np.argsort(labels.familiarity[strange], kind="stable")]
        return cls(
            inputs=len(labels),
            unreadable=int(unreadable.sum()),
            unlabelled=int((~labelled & ~unreadable).sum()),
            per_class={name: counts[name] for name in sorted(candidates, key=lambda name: (-counts[name], name))},
            empty=tuple(name for name in candidates if not counts[name]),
            crowded=tuple(sorted(crowded, key=lambda name: (-counts[name], name))),
            few=tuple(sorted((name for name in few if counts[name]), key=lambda name: (counts[name], name))),
            levels=_levels(labels, labelled),
            strange=tuple(labels.inputs[place] for place in strangest.tolist()),
        )

    @property
    def to_check(self) -> tuple[str, ...]:
        """The classes to check: empty or crowded ones, and those with few labels."""
        return (*self.empty, *self.crowded, *self.few)

    def lines(self, every_class: bool = False) -> list[str]:
        """As text; the counts of many classes only with `every_class`."""
        lines = []
        if self.levels is not None:
            sure, likely, doubtful = self.levels
            lines.append(
                f"{sure} labels are sure ({SURE:g} or more), {likely} likely ({LIKELY:g} or more), {doubtful} doubtful."
            )
        if self.unlabelled:
            lines.append(f"{self.unlabelled} inputs have no label: none is sure enough.")
        lines.append(self._counts(every_class))
        if self.empty:
            lines.append(
                f"Classes without a label: {some(self.empty)}. They are not in the pool, or are taken for others."
            )
        if self.crowded:
            lines.append(f"Classes with very many labels: {some(self.crowded)}. Other classes may be among them.")
        if self.few:
            lines.append(f"Classes with very few labels: {some(self.few)}. Most of them may be taken for others.")
        if self.strange:
            many = len(self.strange)
            which = "1 input is" if many == 1 else f"{many} inputs are"
            lines.append(f"{which} like none of the classes: {some(self.strange)}.")
        return lines

    def _counts(self, every_class: bool) -> str:
        if every_class or len(self.per_class) <= MOST_COUNTS:
            return "Labels per class: " + ", ".join(f"{name} ({count})" for name, count in self.per_class.items())
        counts = self.per_class.values()
        least, usual, most = min(counts), median(counts), max(counts)
        return f"Labels per class: {least} to {most}, half of the classes {usual:g} or more ('pren show' has all)."


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - FEW_NAMES
    return ", ".join(names[:FEW_NAMES]) + (f" and {more} more" if more > 0 else "")


def _levels(labels: Predictions, labelled: np.ndarray) -> LevelCounts | None:
    known = labels.confidence[labelled & np.isfinite(labels.confidence)]
    if not len(known):
        return None
    sure, likely = int((known >= SURE).sum()), int((known >= LIKELY).sum())
    return LevelCounts(sure, likely - sure, len(known) - likely)
