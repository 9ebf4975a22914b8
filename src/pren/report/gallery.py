"""Photographs: what to label next, every unseen class, and classes that are confused, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from pren.report.facts import PAIRS, ReportedImage, RunFacts, most_confused
from pren.report.html import Html, counted, join, percent, soft, tag
from pren.report.page import Section
from pren.report.photographs import Photographs

PER_KIND = 5  # photographs of a class: so many of each kind
MOST_PHOTOGRAPHS = 450  # in the classes' cards, together
MOST_CLASSES = 150  # those with the least sure labels are shown
KINDS = 3


def per_kind(facts: RunFacts) -> int:
    """How many photographs of each kind a class gets, so that the page stays small."""
    classes = min(len(facts.unseen), MOST_CLASSES)
    return max(1, min(PER_KIND, MOST_PHOTOGRAPHS // (KINDS * classes)))


def expected_photographs(facts: RunFacts) -> int:
    """About how many the galleries will ask for."""
    return KINDS * per_kind(facts) * min(len(facts.unseen), MOST_CLASSES)


def to_label(facts: RunFacts, photographs: Photographs) -> Section | None:
    """The images whose labels help most."""
    if facts.details is None or not facts.details.to_label:
        return None
    at = {image.place: image for image in facts.images}
    chosen = [at[place] for place in facts.details.to_label]
    intro = "Each stands for many others, most of all for doubtful ones: a few labels here help more than many others."
    shown = [_figure(image, photographs, _now(image)) for image in chosen]
    return Section("label", "To label", "Label these next", tag("div", shown, class_="strip large"), intro)


def classes(facts: RunFacts, photographs: Photographs) -> Section | None:
    """A card for every unseen class: the surest labels, the doubtful ones, the wrong ones."""
    if not photographs.there:
        return None
    ranked = sorted(facts.unseen, key=lambda name: (_mean(facts.of_class[name]), name))
    shown = ranked[:MOST_CLASSES]
    cards = [_card(name, facts, photographs) for name in shown]
    intro = "The classes with the least sure labels come first. Under each photograph stands how sure its label is."
    if not facts.sure:
        intro = "Nobody knows how sure labels are: here those are surest that are farthest above the second-best class."
    if len(shown) < len(ranked):
        intro = f"{intro} {len(ranked) - len(shown)} classes with surer labels are left out."
    box = tag(
        "label",
        tag("span", "Filter the classes", class_="hidden"),
        tag("input", type="search", placeholder="Filter the classes", data_filters="class-cards", autocomplete="off"),
        tag("span", role="status"),
        class_="filter",
    )
    dense = " dense" if per_kind(facts) < KINDS else ""
    grid = tag("div", cards, class_=f"classes{dense}", id="class-cards")
    content = join([box if len(cards) > 4 else None, grid])
    return Section("classes", "Classes", "What the classes look like", content, intro)


def _card(name: str, facts: RunFacts, photographs: Photographs) -> Html:
    images, most = facts.of_class[name], per_kind(facts)
    if not images:
        nothing = tag("p", "Got no image at all.", class_="quiet")
        return tag("article", tag("h3", soft(name)), nothing, class_="class")
    wrong = [image for image in images if image.wrong][:most]
    surest = [image for image in images if not image.wrong][:most]
    rest = [image for image in reversed(images) if not image.wrong and image not in surest][:most]
    said = [counted(len(images), "image")]
    sure = [image.confidence for image in images if image.confidence is not None]
    if sure:
        said.append(f"{percent(fmean(sure))} expected right")
    known = [image for image in images if image.truth]
    if known:
        said.append(f"{percent(fmean(not image.wrong for image in known))} are")
    rows = [
        _row("Surest", "good", surest, photographs),
        _row("Least sure", "warn", rest, photographs),
        _row("Wrong", "bad", wrong, photographs),
    ]
    kinds = tag("div", rows, class_="kinds")
    return tag("article", tag("h3", soft(name)), tag("p", " · ".join(said), class_="quiet"), kinds, class_="class")


def _row(title: str, kind: str, images: Sequence[ReportedImage], photographs: Photographs) -> Html | None:
    if not images:
        return None
    shown = [_figure(image, photographs, _sure(image)) for image in images]
    return tag("div", tag("h4", title, class_=kind), tag("div", shown, class_="strip"), class_="kind")


def pairs(facts: RunFacts, photographs: Photographs) -> Section | None:
    """The most confused pairs of classes, with photographs of both and what sets their descriptions apart."""
    found = most_confused(facts.confused, PAIRS)
    if not found:
        return None
    by_answers = facts.summary["metrics"] is not None
    intro = (
        "By the answers, these classes are taken for each other most often."
        if by_answers
        else "Nobody knows which labels are wrong. By their confidence and their second-best class, these are confused."
    )
    cards = [_pair(one, other, value, facts, photographs, by_answers) for one, other, value in found]
    return Section("pairs", "Confused", "Easily confused", tag("div", cards, class_="pairs-grid"), intro)


def _pair(one: str, other: str, value: float, facts: RunFacts, photographs: Photographs, by_answers: bool) -> Html:
    how_many = counted(round(value), "image")
    said = f"{how_many} mixed up" if by_answers else f"about {how_many} expected to be mixed up"
    sides = [_side(name, facts, photographs) for name in (one, other)]
    mixed = list(_mixed(one, other, facts, by_answers))[:4]
    confused = [_figure(image, photographs, _truth(image) if image.wrong else _now(image)) for image in mixed]
    middle = [tag("h4", "Between the two", class_="warn"), tag("div", confused, class_="strip")]
    apart = () if facts.details is None else facts.details.apart.get((one, other), ())
    return tag(
        "article",
        tag("h3", soft(one), tag("span", " and ", class_="quiet"), soft(other)),
        tag("p", said, class_="quiet"),
        tag("div", sides, class_="sides") if photographs.there else None,
        middle if photographs.there and confused else None,
        _apart(one, other, apart) if apart else None,
        class_="pair",
    )


def _apart(one: str, other: str, attributes: Sequence[tuple[str, float, float]]) -> Html:
    """The attributes in which two descriptions differ most."""
    heads = ["Described apart by", soft(one), soft(other)]
    header = tag("tr", [tag("th", head, scope="col") for head in heads])
    rows = [
        tag("tr", tag("th", soft(name), scope="row"), [tag("td", f"{value:.2f}") for value in values])
        for name, *values in attributes
    ]
    return tag("table", tag("thead", header), tag("tbody", rows), class_="apart")


def _side(name: str, facts: RunFacts, photographs: Photographs) -> Html | None:
    """Photographs that are surely of a class."""
    images = [image for image in facts.of_class.get(name, ()) if not image.wrong][:2]
    if not images:
        return None
    shown = [_figure(image, photographs, _sure(image)) for image in images]
    return tag("div", tag("h4", soft(name)), tag("div", shown, class_="strip"), class_="kind")


def _mixed(one: str, other: str, facts: RunFacts, by_answers: bool) -> Iterable[ReportedImage]:
    """Photographs of the one that are taken for the other; without answers, those that lie between, doubtful first."""
    both = {one, other}
    for image in facts.images if by_answers else reversed(facts.images):
        between = {image.truth if by_answers else image.runner_up, image.label}
        if between == both:
            yield image


def _figure(image: ReportedImage, photographs: Photographs, said: Sequence[object]) -> Html:
    picture = photographs.picture(image.place, f"{image.name}, labelled {image.label}") if image.place >= 0 else None
    if picture is None:
        picture = tag("span", soft(image.name), class_="nothing")
    return tag("figure", picture, tag("figcaption", said, title=image.name), class_="photo")


def _sure(image: ReportedImage) -> list[object]:
    lines: list[object] = [percent(image.confidence) if image.confidence is not None else image.name]
    return lines + ([tag("span", "is ", soft(image.truth), class_="bad")] if image.wrong else [])


def _truth(image: ReportedImage) -> list[object]:
    return [tag("span", "taken for ", soft(image.label)), tag("span", "is ", soft(image.truth), class_="bad")]


def _now(image: ReportedImage) -> list[object]:
    sure = "" if image.confidence is None else f" ({percent(image.confidence)})"
    second = [tag("span", "or ", soft(image.runner_up), "?", class_="quiet")] if image.runner_up else []
    return [tag("span", soft(image.name), class_="file"), tag("span", soft(image.label), sure), *second]


def _mean(images: Sequence[ReportedImage]) -> float:
    """How sure labels are; those of nobody come first."""
    known = [image.confidence for image in images if image.confidence is not None]
    return fmean(known) if known else -1.0
