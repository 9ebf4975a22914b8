"""What the page shows, as JSON: the state of a review, its groups, its photographs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pren.label.names import MOST_TO_LOOK_AT
from pren.problem import UNKNOWN, ClassTable
from pren.review.journal import Verdict
from pren.review.session import Session
from pren.review.snapshot import Snapshot
from pren.trust.confidence import SURE
from pren.trust.names import CHECK

OF_EACH = 5  # photographs of each kind
NEAREST = 2  # seen classes beside a group
MOST_EXAMPLES = 4  # of their photographs
SAID = 6  # attributes that describe a class
ENOUGH_LABELS = 0.95
STEADY = 2  # fits that moved no label


def state(session: Session) -> dict[str, Any]:
    """Everything but the photographs."""
    snapshot, journal = session.snapshot, session.journal
    verdicts = journal.verdicts()
    groups = _groups(session, snapshot)
    open_photographs = _to_ask(session, snapshot, verdicts)
    return {
        "revision": session.revision,
        "position": journal.position,
        "title": session.title,
        "setting": session.setting,
        "doing": session.refitter.doing,
        "failure": session.refitter.failure,
        "learned": session.learned,
        "photographs": len(session.files),
        "answered": sum(bool(verdict.name) for verdict in verdicts.values()),
        "strangers": sum(verdict.mark == "stranger" for verdict in verdicts.values()),
        "doubtful": len(open_photographs),
        "forecast": {
            "first": session.first.forecast,
            "now": snapshot.forecast,
            "sentence": snapshot.sentence,
        },
        "change": {
            "moved": session.change.moved,
            "groups": [list(each) for each in session.change.groups],
            "settled": session.change.settled,
        },
        "enough": _enough(session, groups, len(open_photographs)),
        "classes": _classes(snapshot),
        "groups": groups,
    }


def _classes(snapshot: Snapshot) -> list[dict[str, Any]]:
    table = snapshot.table
    counts = np.bincount(snapshot.labels[snapshot.labels != UNKNOWN], minlength=len(table))
    able = set(snapshot.candidates.tolist())
    return [
        {"name": name, "seen": bool(table.seen[row]), "count": int(counts[row]), "candidate": row in able}
        for row, name in enumerate(table.names)
    ]


def _groups(session: Session, snapshot: Snapshot) -> list[dict[str, Any]]:
    """Every class that photographs have, the least certain name first."""
    pending = session.journal.group_verdicts(snapshot.position)
    settled = session.journal.group_verdicts(0)
    given = {session.place[name] for name, said in session.journal.verdicts().items() if name in session.place}
    found = [
        _group(session, snapshot, row, pending, settled, given)
        for row in snapshot.candidates.tolist()
        if (snapshot.labels == row).any()
    ]
    found.sort(key=lambda group: (not group["open"], group["certainty"] or 0.0, -group["count"], group["name"]))
    return found


def _group(
    session: Session,
    snapshot: Snapshot,
    row: int,
    pending: dict[str, Verdict],
    settled: dict[str, Verdict],
    given: set[int],
) -> dict[str, Any]:
    name = snapshot.table.names[row]
    members, known = snapshot.members(row), snapshot.names.get(name)
    verdict = pending.get(name)
    answered = verdict is not None or any(said == Verdict(name) for said in settled.values())
    sure = snapshot.confidence[members]
    mean = None if np.isnan(sure).all() else float(np.nanmean(sure))
    certainty = mean if known is None or math.isnan(known.certainty) else known.certainty
    others = _others(snapshot, row) if known is None else [list(other) for other in known.others]
    look_at = [session.place[file] for file in (known.look_at if known else ()) if file in session.place]
    first = (look_at or members[:OF_EACH].tolist())[:MOST_TO_LOOK_AT]
    rest = [place for place in members.tolist() if place not in set(first)]
    last = rest[-OF_EACH:] if len(rest) > OF_EACH else rest
    middle = rest[: len(rest) - len(last)]
    start = max(0, len(middle) // 2 - OF_EACH // 2)
    return {
        "name": name,
        "count": len(members),
        "certainty": certainty,
        "open": not answered,
        "unsure": certainty is None or certainty < CHECK,
        "said": None if verdict is None else {"name": verdict.name, "mark": verdict.mark},
        "others": others,
        "surest": first,
        "typical": middle[start : start + OF_EACH],
        "doubtful": last,
        "answered": sum(place in given for place in members.tolist()),
    }


def _others(snapshot: Snapshot, row: int) -> list[list[Any]]:
    """The most frequent runners-up of a group, where the method says nothing of names."""
    second = snapshot.likely[snapshot.labels == row]
    second = second[(second != row) & (second != UNKNOWN)]
    counts = np.bincount(second, minlength=len(snapshot.table))
    best = [place for place in np.argsort(-counts, kind="stable")[:3].tolist() if counts[place]]
    return [[snapshot.table.names[place], None] for place in best]


def _to_ask(session: Session, snapshot: Snapshot, verdicts: dict[str, Verdict]) -> list[int]:
    """Photographs whose label is not sure and that have no answer, the best question first; "later" ones last."""
    now, later = [], []
    for place in snapshot.queue.tolist():
        verdict = verdicts.get(session.files[place])
        if verdict is None and not snapshot.confidence[place] >= SURE:
            now.append(place)
        elif verdict is not None and verdict.mark == "later":
            later.append(place)
    return now + later


def _enough(session: Session, groups: list[dict[str, Any]], doubtful: int) -> str:
    """Why more answers would not help; "" if they would."""
    if any(group["open"] and group["unsure"] for group in groups):
        return ""
    if not doubtful:
        return "Every label is sure: more answers would change little."
    forecast = session.snapshot.forecast
    if forecast is not None and forecast[0] >= 100 * ENOUGH_LABELS:
        return "At least 95 % of the labels should be right: more answers would change little."
    if session.steady >= STEADY:
        return "The last answers moved no label: more would change little."
    return ""


def photographs(session: Session, show: str, name: str, start: int, count: int) -> dict[str, Any]:
    """Some photographs: those in doubt, those of a class, or all that were answered.

    Args:
        session: The review.
        show: "doubt", "class", "answered", "strangers" or "all".
        name: Of the class.
        start: The first one.
        count: How many.
    """
    snapshot, verdicts = session.snapshot, session.journal.verdicts()
    table = snapshot.table
    if show == "doubt":
        places = _to_ask(session, snapshot, verdicts)
    elif show == "class":
        places = snapshot.members(table.names.index(name)).tolist() if name in table.names else []
    elif show == "all":
        places = list(range(len(session.files)))
    else:
        wanted = [f for f, said in verdicts.items() if (said.mark == "stranger" if show == "strangers" else said.name)]
        places = sorted(session.place[file] for file in wanted if file in session.place)
    chosen = places[start : start + count]
    return {
        "total": len(places),
        "start": start,
        "photographs": [photograph(session, place, verdicts) for place in chosen],
    }


def photograph(session: Session, place: int, verdicts: dict[str, Verdict]) -> dict[str, Any]:
    """One photograph and its label."""
    snapshot, names = session.snapshot, session.snapshot.table.names
    row, file = int(snapshot.labels[place]), session.files[place]
    verdict = verdicts.get(file)
    sure = float(snapshot.confidence[place])
    likely = [names[other] for other in snapshot.likely[place].tolist() if other != UNKNOWN]
    label = "" if row == UNKNOWN else names[row]
    return {
        "id": place,
        "file": file.encode("utf-8", "backslashreplace").decode(),
        "label": label,
        "confidence": None if math.isnan(sure) else round(sure, 3),
        "strange": snapshot.strange(place),
        "likely": [label, *(other for other in likely if other != label)][: len(likely)] if label else likely,
        "said": None if verdict is None else {"name": verdict.name, "mark": verdict.mark},
    }


def beside(session: Session, name: str) -> dict[str, Any]:
    """What a class is said to be, beside labelled photographs of the nearest seen classes."""
    table = session.snapshot.table
    row = table.names.index(name)
    table_seen = np.flatnonzero(table.seen & (np.arange(len(table)) != row))
    near = table.signatures[table_seen] @ table.signatures[row]
    order = table_seen[np.argsort(-near, kind="stable")[:NEAREST]].tolist()
    nearest = [
        {"name": table.names[other], "photographs": len(session.examples.get(table.names[other], [])[:MOST_EXAMPLES])}
        for other in order
    ]
    return {"name": name, "description": _described(session, table, row), "nearest": nearest}


def _described(session: Session, table: ClassTable, row: int) -> list[str]:
    """Sentences, or the attributes by which a class differs most from the others."""
    name = table.names[row]
    for source in (session.problem.recipe or {}).get("sources", []):
        texts = (source.get("texts") or {}).get(name)
        if texts:
            return [str(text) for text in texts]
    if table.attributes is None:
        return []
    apart = table.signatures[row] - table.signatures.mean(axis=0)
    strongest = np.argsort(-np.abs(apart), kind="stable")[:SAID].tolist()
    return [
        f"{'much' if apart[j] > 0 else 'little'} {table.attributes[j]}"
        for j in strongest
        if not math.isclose(apart[j], 0)
    ]
