"""Photographs: what to label next, every unseen class, and pairs of confused classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pren.label.names import GroupName
from pren.report.evidence import Apart
from pren.report.facts import RunFacts, most_confused
from pren.report.image import ReportedImage, mean_confidence, share_right
from pren.report.photographs import Thumbnail

TO_LABEL = 12  # suggested photographs, unless others are asked for
PAIRS = 6  # of confused classes
PER_KIND = 5  # photographs of each kind, per class
MOST_PHOTOGRAPHS = 450  # in all cards
MOST_CLASSES = 150  # those with the least sure labels are shown
KINDS = 3


@dataclass(frozen=True)
class Photo:
    """An input and its thumbnail; None if it cannot be shown."""

    image: ReportedImage
    thumbnail: Thumbnail | None


@dataclass(frozen=True)
class NameCard:
    """A group whose name is to be checked, and the inputs to look at."""

    group: GroupName
    photos: list[Photo]


@dataclass(frozen=True)
class ClassCard:
    """A class: number of labels, expected and actual share of right ones, and examples."""

    name: str
    count: int
    expected: float | None
    right: float | None
    surest: list[Photo]
    least_sure: list[Photo]
    wrong: list[Photo]


@dataclass(frozen=True)
class ClassCards:
    """The cards of classes, the number of classes left out, and whether cards are small."""

    cards: list[ClassCard]
    left_out: int
    dense: bool


@dataclass(frozen=True)
class Pair:
    """Two confused classes: number of inputs, examples of each and between, how descriptions differ."""

    one: str
    other: str
    count: int
    sides: list[tuple[str, list[Photo]]]
    between: list[Photo]
    apart: Apart


def per_kind(classes: int) -> int:
    """Photographs of each kind per class, so that the page stays small."""
    return max(1, min(PER_KIND, MOST_PHOTOGRAPHS // (KINDS * min(classes, MOST_CLASSES))))


def expected_photographs(classes: int) -> int:
    """About how many photographs the galleries need."""
    return KINDS * per_kind(classes) * min(classes, MOST_CLASSES)


def names(facts: RunFacts) -> list[NameCard] | None:
    """The names to check, the worst first."""
    at = {image.name: image for image in facts.images}
    return [
        NameCard(group, _photos([at[name] for name in group.look_at if name in at], facts))
        for group in facts.doubtful_names[:MOST_CLASSES]
    ] or None


def to_label(facts: RunFacts) -> list[Photo] | None:
    """The inputs to label next."""
    if facts.details is None or not facts.details.to_label:
        return None
    at = {image.place: image for image in facts.images}
    return _photos([at[place] for place in facts.details.to_label], facts)


def classes(facts: RunFacts) -> ClassCards | None:
    """A card for every unseen class, those with the least sure labels first."""
    if not facts.photographs.there:
        return None

    def sureness(name: str) -> tuple[float, str]:
        mean = mean_confidence(facts.of_class[name])
        return -1.0 if mean is None else mean, name

    ranked, most = sorted(facts.unseen, key=sureness), per_kind(len(facts.unseen))
    cards = [_card(name, facts, most) for name in ranked[:MOST_CLASSES]]
    return ClassCards(cards, len(ranked) - len(cards), most < KINDS)


def _card(name: str, facts: RunFacts, most: int) -> ClassCard:
    images = facts.of_class[name]
    wrong = [image for image in images if image.wrong][:most]
    surest = [image for image in images if not image.wrong][:most]
    rest = [image for image in reversed(images) if not image.wrong and image not in surest][:most]
    photos = [_photos(kind, facts) for kind in (surest, rest, wrong)]
    return ClassCard(name, len(images), mean_confidence(images), share_right(images), *photos)


def pairs(facts: RunFacts) -> list[Pair] | None:
    """The most confused pairs of classes, with photographs and the differences of their descriptions."""
    return [_pair(*pair, facts) for pair in most_confused(facts.confused, PAIRS)] or None


def _pair(one: str, other: str, value: float, facts: RunFacts) -> Pair:
    apart = Apart([]) if facts.details is None else facts.details.apart.get((one, other), Apart([]))
    if not facts.photographs.there:
        return Pair(one, other, round(value), [], [], apart)
    sure = {name: [i for i in facts.of_class.get(name, ()) if not i.wrong][:2] for name in (one, other)}
    sides = [(name, _photos(images, facts)) for name, images in sure.items() if images]
    between = _photos(list(_mixed(one, other, facts))[:4], facts)
    return Pair(one, other, round(value), sides, between, apart)


def _mixed(one: str, other: str, facts: RunFacts) -> Iterable[ReportedImage]:
    """Inputs of one class that are taken for the other; without answers, inputs between both, doubtful first."""
    by_answers = facts.metrics is not None
    for image in facts.images if by_answers else reversed(facts.images):
        if {image.truth if by_answers else image.runner_up, image.label} == {one, other}:
            yield image


def _photos(images: Sequence[ReportedImage], facts: RunFacts) -> list[Photo]:
    return [Photo(image, facts.photographs.thumbnail(image.place)) for image in images]
