"""A pool from another camera: labelled photographs are made to look like it, where that helps."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from pren.data import held_out_classes
from pren.foundation.errors import PrenError
from pren.images.files import ImageFiles, image_files
from pren.images.look import LARGEST, SIDE, WHOLE, Look, Sample, signs
from pren.images.side_by_side import FeatureStore, SideBySide
from pren.methods.pren_pool import PrENPool
from pren.methods.preparation.whitening import distance_by_chance, rooted
from pren.problem import Problem
from pren.problem.inputs import ArrayInputs, Inputs
from pren.training.processes import Fabric
from pren.trust.quiet import quietly

log = logging.getLogger(__name__)

SOME = 96  # photographs of either kind that are compared
FEWEST = 30  # of either kind; fewer do not tell what photographs look like
FAR = 1.5  # how far features lie apart, in the distance (squared) by chance, before any photograph is looked at
CLEAR = 9.0  # the same of a sign: three standard errors
NEARER = 0.85  # what is left of the distance of features, at most, where a look is worth it
LESS = 0.7  # a share of colour or contrast that is worth a change
LIGHTER, SHARPER = 25.0, 0.7  # levels of light, and logarithms of power, that are
CRUDE, CRUDER = 60, 15  # the quality of a JPEG that is seen, and how much less than that of others
SEEN_FROM = 1.5 * LARGEST  # pixels from which compression is not seen
BLURS, NOISES = (0.0, 0.7, 1.5, 2.5, 4.0, 6.0), (0.0, 5.0, 10.0, 18.0, 30.0, 45.0)
LEAST_BLUR, LEAST_NOISE = 0.3, 3.0  # less noise is what compression leaves of the pool's sharp edges
ROUGHLY, NEARLY, TRIES = 6, 12, 24
COLOUR, LIGHT, CONTRAST, SHARP, FINE = 0, 1, 2, (5, 6), slice(4, 7)  # the places of signs
GREY, FLAT, FAINT = 0.05, 0.95, 1e-6
REHEARSED, DRAWS = 600, 3
Matrix = NDArray[np.float64]
Places = NDArray[np.int64]


class Distance(NamedTuple):
    """How far a pool is from labelled photographs: squared, and in units of what chance explains."""

    squared: float
    by_chance: float


def find_look(problem: Problem, store: FeatureStore, fabric: Fabric) -> Look | None:
    """The look that makes labelled photographs like the pool's; None if they are alike, or it does not help.

    Some photographs decide. If their features lie no farther apart than other classes explain, no more is done; all
    that was computed until then is in the cache. Otherwise what the pool looks like is measured. The look has to bring
    the features closer, and seen classes that are held out and get that look have to be recognised more often if the
    others get it too.
    """
    train, pool = image_files(problem.train), image_files(problem.pool)
    if min(len(train), len(pool)) < FEWEST:
        return None
    places, others = _spread(problem.labels, SOME), np.unique(np.linspace(0, len(pool) - 1, SOME).astype(int))
    ours, theirs = (store.extract(f, fabric) for f in (train.select(places), pool.select(others)))
    good = np.setdiff1d(np.arange(len(places)), [place for place, _ in ours.problems])
    labels, unseen = problem.labels[places], max(1, int(problem.classes.unseen.sum()))
    if not len(good) or not len(theirs.inputs):
        return None
    features = [_rooted(each.inputs[np.arange(len(each.inputs))]) for each in (ours, theirs)]
    before = distance(features[0], labels[good], features[1], unseen)
    if before.by_chance < FAR:
        return None
    look = match(Sample.of(train, places), problem.labels, Sample.of(pool, others), unseen)
    if look == Look():
        return None
    frozen, readable = store.backbones, train.select(places[good])
    found = [
        (distance(_features(readable, frozen, each, fabric), labels[good], features[1], unseen), each)
        for each in parts_of(look)
    ]
    after, look = min(found, key=lambda each: each[0].squared)
    log.debug("%s: %s before, %s after.", look, before, after)
    if after.by_chance > NEARER * before.by_chance or after.squared > NEARER * before.squared:
        return None
    return look if better_in_rehearsals(problem, store, look, fabric) else None


def match(labelled: Sample, labels: Places, pool: Sample, unseen: int) -> Look:
    """What to do to labelled photographs so that their signs become those of the pool; only where they clearly differ.

    Args:
        labelled: Some labelled photographs.
        labels: The classes of all labelled photographs.
        pool: Some of the pool.
        unseen: How many classes it has.
    """
    if not len(labelled.images) or not len(pool.images):
        return Look()
    own, theirs = labels[labelled.places], pool.signs.mean(axis=0)

    def clear(known: Matrix, sign: int) -> bool:
        return distance(known[:, [sign]], own, pool.signs[:, [sign]], unseen).by_chance > CLEAR

    known, ours = labelled.signs, labelled.signs.mean(axis=0)
    darker = abs(theirs[LIGHT] - ours[LIGHT]) > LIGHTER and clear(known, LIGHT)
    flatter = theirs[CONTRAST] < LESS * ours[CONTRAST] and clear(known, CONTRAST)
    tone = partial(_lit, theirs=theirs) if darker or flatter else lambda look, known: look
    look = tone(Look(), known)
    known = signs(labelled.images, look)  # less contrast is less colour
    colour = known[:, COLOUR].mean()
    if theirs[COLOUR] < LESS * colour and clear(known, COLOUR):
        share = float(theirs[COLOUR] / colour)
        look = look.model_copy(update={"colour": round(share, 2) if share > GREY else 0.0})
    gaps = np.abs(known.mean(axis=0) - theirs)
    quality, side = int(np.median(pool.qualities)), int(min(np.median(pool.sides), LARGEST))
    crude = quality <= min(CRUDE, np.median(labelled.qualities) - CRUDER) and np.median(pool.sides) < SEEN_FROM
    if not crude and not any(gaps[sign] > SHARPER and clear(known, sign) for sign in SHARP):
        return look
    look = look.model_copy(update={"side": max(side, 1), "quality": quality if crude else WHOLE})
    look = _grained(look, labelled, theirs)
    toned = tone(look, signs(labelled.images, look))  # blur takes contrast, too
    return look if toned == look else _grained(toned, labelled, theirs)


def _lit(look: Look, known: Matrix, theirs: Matrix) -> Look:
    """A look with the pool's light and contrast: `known` (n, 7) are signs with the look, `theirs` (7,) the pool's."""
    ours = known.mean(axis=0)
    contrast = min(1.0, look.contrast * float(theirs[CONTRAST] / max(ours[CONTRAST], FAINT)))
    contrast = round(contrast, 2) if contrast < FLAT else 1.0
    light = float(theirs[LIGHT] - contrast / look.contrast * (ours[LIGHT] - look.light))
    return look.model_copy(update={"contrast": contrast, "light": float(round(min(max(light, -255.0), 255.0)))})


def _grained(look: Look, labelled: Sample, theirs: Matrix) -> Look:
    """A look with the sharpness and the noise of the pool."""

    def with_grain(blur: float, noise: float) -> Look:
        return look.model_copy(update={"blur": max(0.0, float(blur)), "noise": max(0.0, float(noise))})

    def gap(grain: Sequence[float], count: int) -> float:
        step = max(1, len(labelled.images) // count)
        ours = signs(labelled.images[::step][:count], with_grain(*grain)).mean(axis=0)
        return float(((ours - theirs)[FINE] ** 2).sum())

    scale, blur, noise = (look.side or SIDE) / SIDE, look.blur, look.noise
    if blur == noise == 0:
        rough = [(scale * blur, scale * noise) for blur in BLURS for noise in NOISES]
        blur, noise = min(rough, key=partial(gap, count=ROUGHLY))
    start = np.array([[blur, noise], [blur + 0.4 * scale, noise], [blur, noise + 3 * scale]])
    found = minimize(
        gap, start[0], args=(NEARLY,), method="Nelder-Mead", options={"maxfev": TRIES, "initial_simplex": start}
    )
    blur, noise = np.round(np.maximum(found.x, 0), 1).tolist()
    return with_grain(blur if blur >= LEAST_BLUR else 0.0, noise if noise >= LEAST_NOISE else 0.0)


def parts_of(look: Look) -> list[Look]:
    """A look, and it without its colour, its light, its grain or its noise."""
    plain = Look()
    groups = (["colour"], ["contrast", "light"], ["side", "blur", "noise", "quality"], ["noise"])
    without = [look.model_copy(update={name: getattr(plain, name) for name in group}) for group in groups]
    return [look, *(each for each in without if each not in (look, plain))]


def distance(ours: Matrix, labels: Places, theirs: Matrix, unseen: int) -> Distance:
    """From labelled photographs (n, d) of classes (n,) to those of the pool (m, d), which has so many classes."""
    classes, rows, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    means = np.stack([ours[rows == row].mean(axis=0) for row in range(len(classes))])
    within = float(((ours - means[rows]) ** 2).sum()) / max(len(ours) - len(classes), 1)
    centre = theirs.mean(axis=0)
    squared = float(((means.mean(axis=0) - centre) ** 2).sum())
    return Distance(squared, distance_by_chance(means, within, sizes.astype(float), centre, len(theirs), unseen))


def better_in_rehearsals(problem: Problem, store: FeatureStore, look: Look, fabric: Fabric) -> bool:
    """Whether held-out classes that have this look are recognised more often if the others get it, too."""
    places = np.sort(_spread(problem.labels, max(REHEARSED, 2 * int(problem.classes.seen.sum()))))
    files = image_files(problem.train).select(places)
    plain, altered = store.extract(files, fabric), store.altered(look).extract(files, fabric)
    good = np.setdiff1d(np.arange(len(places)), [place for place, _ in plain.problems])
    both = [_vectors(each.inputs) for each in (plain, altered)]
    d, right = both[0].shape[1], np.zeros(2)
    content: dict[str, Any] = {
        "train": ArrayInputs(np.concatenate(both, axis=1)),
        "labels": problem.labels[places[good]],
    }
    pool = ArrayInputs(np.zeros((1, 2 * d), np.float32))
    try:
        sample = replace(problem, **content, pool=pool, given=None, setting="zsl")
        for fold, answers in held_out_classes(sample, DRAWS):
            truth = fold.classes.named(answers.labels)
            train, pool = _vectors(fold.train), ArrayInputs(_vectors(fold.pool)[:, d:])
            for way, own in enumerate((train[:, :d], train[:, d:])):
                with quietly():
                    fitted = PrENPool().fit(replace(fold, train=ArrayInputs(own), pool=pool))
                right[way] += float((fitted.predict(pool) == truth).mean())
    except PrenError as error:  # too few seen classes, or none of a class can be read
        log.debug("No rehearsals of a look: %s", error)
        return True
    log.debug("Rehearsals: %s right as they are, and with %s.", right / DRAWS, look)
    return bool(right[1] > right[0])


def _spread(labels: Places, count: int) -> Places:
    """About `count` places of inputs: as many of each class, at least two, and of some classes if there are many."""
    classes, chosen = np.unique(labels), []
    each = max(2, -(-count // len(classes)))
    for row in classes[np.unique(np.linspace(0, len(classes) - 1, count // 2).astype(int))]:
        own = np.flatnonzero(labels == row)
        chosen.append(own[np.unique(np.linspace(0, len(own) - 1, each).astype(int))])
    return np.concatenate(chosen)


def _features(files: ImageFiles, frozen: SideBySide, look: Look, fabric: Fabric) -> Matrix:
    """(n, d) of photographs with a look, not kept."""
    levels = [files.prepared(part.preprocessing).decoded(range(len(files)))[0] for part in frozen.altered(look).parts]
    return _rooted(torch.from_numpy(frozen(levels, fabric.device)))


def _vectors(inputs: Inputs) -> NDArray[np.float32]:
    return inputs[np.arange(len(inputs))].flatten(1).numpy()


def _rooted(features: torch.Tensor) -> Matrix:
    return rooted(features.flatten(1).double()).numpy()
