"""Use a fitted model: from photographs or arrays to classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from pren.data.arrays import read_inputs
from pren.foundation.errors import PrenError
from pren.images.files import ImageFiles, image_files
from pren.images.photographs import recorded_backbone
from pren.images.preprocessing import Preprocessing, plain
from pren.images.side_by_side import FeatureStore, SideBySide
from pren.images.sources import open_pictures
from pren.label.predictions import Predictions
from pren.methods.base import Method
from pren.problem import UNKNOWN, candidates_of
from pren.problem.inputs import CHUNK, Array, ArrayInputs, Inputs, as_inputs
from pren.problem.scoring import top_classes
from pren.store.models import load_model
from pren.training.processes import Fabric, single_process
from pren.trust import Trust

NUMBERS = 1 << 24  # in memory at once: a hundred photographs
Photograph = str | Path | bytes | Image.Image | NDArray[np.uint8]
OnPredicted = Callable[[int], None]  # inputs done


@dataclass(frozen=True, eq=False)
class Opened:
    """N inputs as the model or its backbone takes them, and their names; see `Predictor.open`."""

    names: Sequence[str]
    inputs: Inputs

    def __len__(self) -> int:
        return len(self.names)

    def part(self, start: int, end: int) -> Opened:
        """The inputs from `start` to before `end`."""
        return Opened(self.names[start:end], self.inputs.select(np.arange(start, min(end, len(self)))))

    def looks(self) -> str:
        """A hash of the inputs; for files, of their paths, sizes and times."""
        known = self.inputs.looks() if isinstance(self.inputs, ImageFiles) else self.inputs.digest()
        return known.hex()


Images = Photograph | Sequence[Photograph] | Inputs | Array | Opened


class _Part(NamedTuple):
    """Results of n inputs: (n, L) scores, (n,) familiarity, both NaN if unreadable, and n errors."""

    scores: NDArray[np.float64]
    familiarity: NDArray[np.float64]
    errors: list[str]


class Predictor:
    """Labels photographs or arrays with a fitted model.

    Photographs are prepared as in training: by the frozen backbone, or for the model's own backbone. The result does
    not depend on how many are labelled at once.

    Args:
        model: A fitted method.
        weights: The file with the frozen backbone's weights, if it has moved.
        cache: Where the features of files are kept; `PREN_CACHE` or ``~/.cache/pren`` by default.
        trust: How far to trust labels (`pren.assess`); None if that is not known.
        fabric: One process for the backbone; None for the best device.
    """

    def __init__(
        self,
        model: Method,
        weights: str | None = None,
        cache: str | Path | None = None,
        trust: Trust | None = None,
        fabric: Fabric | None = None,
    ) -> None:
        self.model = model
        self.trust = trust
        self._weights = weights
        self._cache = cache
        self._fabric = fabric or single_process()

    @classmethod
    def load(
        cls,
        folder: str | Path,
        weights: str | None = None,
        cache: str | Path | None = None,
        fabric: Fabric | None = None,
    ) -> Predictor:
        """Load the model of a run folder, or of a folder that `Method.save` wrote."""
        return cls(load_model(folder), weights, cache, Trust.load(folder), fabric)

    def scores(self, images: Images) -> NDArray[np.float64]:
        """Scores of N inputs, as for `label`: (N, L), columns as the rows of ``model.classes_``.

        Raises:
            PrenError: If an input cannot be read; `label` only notes that.
        """
        parts = []
        for part in self._parts(self.open(images).inputs):
            for error in filter(None, part.errors):
                raise PrenError("input-unreadable", error)
            parts.append(part.scores)
        return np.concatenate(parts)

    def predict(self, images: Images, among: str | None = None) -> NDArray[np.str_]:
        """The best class of every input, as in scikit-learn.

        Args:
            images: As for `label`.
            among: As for `label`.

        Returns:
            (N,) names of classes; "" for an input that cannot be read.
        """
        return self.label(images, 1, among).labels

    def label(
        self,
        images: Images,
        top: int = 5,
        among: str | None = None,
        min_accuracy: float | None = None,
        on_progress: OnPredicted | None = None,
    ) -> Predictions:
        """Find the best classes of every input, with scores, confidence and familiarity.

        Args:
            images: One or several of: the path of a photograph, a folder, a ``.tar`` file or a list of paths (.txt),
                the bytes of an image file, a Pillow image, an (H, W, 3) array of levels from 0 to 255 (uint8). Or the
                path of one ``.npy`` or ``.npz`` file. Or (N, D) features or (N, C, H, W) levels from 0 to 1, of the
                shape that the model or its backbone takes: an array or `Inputs`. Or the result of `open`.
            top: How many classes; fewer if there are fewer candidates.
            among: "unseen", "seen" or "all"; by default "unseen" in ZSL and "all" in GZSL.
            min_accuracy: Leave doubtful inputs without a label, so that this share of the labels is right: 0.95, say.
            on_progress: Called after every few inputs.

        Raises:
            PrenError: If these inputs are not for this model. An unreadable one has an error in the result.
        """
        among, trust = self.check(top, among, min_accuracy)
        opened = self.open(images)
        table, setting = self.model.classes_, self.model.setting_
        errors: list[str] = []
        found = []
        for scores, familiarity, faults in self._parts(opened.inputs, on_progress):
            best, values = top_classes(scores, table, among, top)
            bad = np.array([bool(fault) for fault in faults], dtype=bool)
            best[bad] = UNKNOWN
            confidence = np.full(len(scores), np.nan)
            if trust is not None:
                confidence[~bad] = trust.sure(scores[~bad], table, setting, familiarity[~bad])
                if min_accuracy is not None:
                    best[~trust.reaches(min_accuracy, confidence)] = UNKNOWN
            errors += faults
            found.append((best, np.where(best == UNKNOWN, np.nan, values), confidence, familiarity))
        classes, points, sure, familiar = (np.concatenate(part) for part in zip(*found, strict=True))
        return Predictions(tuple(opened.names), classes, points, sure, familiar, tuple(errors), table)

    def check(self, top: int, among: str | None, min_accuracy: float | None) -> tuple[str, Trust | None]:
        """Check the arguments of `label`; returns the candidates and the trust for them."""
        if top < 1:
            raise PrenError("option-value", f"top must be 1 or more, not {top}.")
        usual = candidates_of(self.model.setting_)
        among = among or usual
        self.model.classes_.among(among)
        trust = self.trust if among == usual else None
        if min_accuracy is not None and trust is None:
            raise PrenError(
                "no-rehearsals",
                "The model does not know how sure these labels are: fit with --rehearsals 10, or omit --among.",
            )
        return among, trust

    def open(self, images: Images, column: str | None = None) -> Opened:
        """Find the inputs; photographs are not read yet.

        Args:
            images: As for `label`.
            column: Read paths from this column of ``.csv`` files.
        """
        if isinstance(images, Opened):
            return images
        if isinstance(images, str | Path) and Path(images).suffix.lower() in (".npy", ".npz"):
            images = read_inputs(images)
        photographs = open_pictures(images, column)
        inputs = as_inputs(images, "images") if photographs is None else photographs[1]  # type: ignore[arg-type]
        names = list(map(str, range(len(inputs)))) if photographs is None else photographs[0]
        return Opened(names, inputs.prepared(self._preprocessings[0]) if inputs.photographs else inputs)

    def _parts(self, inputs: Inputs, on_progress: OnPredicted | None = None) -> Iterator[_Part]:
        """The results of a few inputs at a time."""
        files = image_files(inputs) if inputs.photographs else None
        if files is not None and files.on_disk and self.model.extractor_ is not None:
            yield from self._through_cache(files, on_progress)
            return
        done = 0
        views = [inputs] if files is None else [files.prepared(wanted) for wanted in self._preprocessings]
        for values, errors in _ahead(views):
            yield self._scored(self._as_trained(values), errors)
            done += len(errors)
            if on_progress is not None:
                on_progress(done)

    def _through_cache(self, files: ImageFiles, on_progress: OnPredicted | None) -> Iterator[_Part]:
        told = None if on_progress is None else lambda done, fresh, total: on_progress(done)
        found = self._kept.extract(files, self._fabric, on_progress=told)
        reasons, before = dict(found.problems), 0
        for places in _pieces(len(files), self._frozen.shape):
            errors = [reasons.get(int(place), "") for place in places]
            after = before + errors.count("")
            yield self._scored(found.inputs.select(np.arange(before, after)), errors)
            before = after

    def _as_trained(self, views: list[Tensor]) -> Inputs:
        """Inputs, or their features if they are photographs and the model was trained on features.

        Photographs have a view per backbone, arrays have one.
        """
        inputs = views[0]
        if self.model.extractor_ is None or inputs.ndim != 4 or inputs.shape[1:] == self.model.sample_shape_:
            return ArrayInputs(inputs.numpy())
        wanted = [part.preprocessing.sample_shape for part in self._frozen.parts]
        views = views if len(views) == len(wanted) else views * len(wanted)
        for view, shape in zip(views, wanted, strict=True):
            if view.shape[1:] != shape:
                raise PrenError(
                    "inputs-shape",
                    f"The model's backbone takes inputs of shape {shape} each, not {tuple(view.shape[1:])}.",
                )
        return ArrayInputs(self._frozen([view * 255 for view in views], self._fabric.device), "features")

    def _scored(self, inputs: Inputs, errors: list[str]) -> _Part:
        scores, familiarity = np.full((len(errors), len(self.model.classes_)), np.nan), np.full(len(errors), np.nan)
        if len(inputs) or not errors:
            good = [not error for error in errors]
            scores[good] = self.model.scores(inputs)
            if self.trust is not None:
                familiarity[good] = self.trust.familiar(inputs)
        return _Part(scores, familiarity, errors)

    @cached_property
    def _frozen(self) -> SideBySide:
        """The backbones that made the features for training."""
        return recorded_backbone(self.model.extractor_ or {}, self._weights, self.model.tail_)

    @cached_property
    def _kept(self) -> FeatureStore:
        """The features of files."""
        return FeatureStore(self._cache, self._frozen)

    @property
    def _preprocessings(self) -> list[Preprocessing]:
        """How photographs are prepared for each backbone."""
        if self.model.extractor_ is not None:
            return [part.preprocessing for part in self._frozen.parts]
        if len(self.model.sample_shape_) == 1:
            raise PrenError(
                "features-needed",
                "The model was trained on features of an unknown backbone: give it features (.npy, .npz or an array), "
                "not photographs.",
            )
        return [self.model.preprocessing_ or plain(self.model.sample_shape_)]


def _ahead(views: Sequence[Inputs]) -> Iterator[tuple[list[Tensor], list[str]]]:
    """A few inputs at a time and their errors; a thread reads the next ones meanwhile.

    Several views are the same photographs in several sizes.
    """

    def read(places: NDArray[np.int64]) -> tuple[list[Tensor], list[str]]:
        if not views[0].photographs:
            return [view[places] for view in views], [""] * len(places)
        decoded = [image_files(view).decoded(places) for view in views]
        errors = [next(filter(None, reasons), "") for reasons in zip(*(own for _, own in decoded), strict=True)]
        good = [[not error for error, bad in zip(errors, own, strict=True) if not bad] for _, own in decoded]
        return [levels[kept].float().div_(255) for (levels, _), kept in zip(decoded, good, strict=True)], errors

    with ThreadPoolExecutor(1) as reader:
        waiting = None
        for places in _pieces(len(views[0]), views[0].sample_shape):
            following = reader.submit(read, places)
            if waiting is not None:
                yield waiting.result()
            waiting = following
        assert waiting is not None
        yield waiting.result()


def _pieces(count: int, shape: tuple[Any, ...]) -> Iterator[NDArray[np.int64]]:
    """All places, as many at a time as fit into memory; one empty piece if there are none."""
    size = max(1, min(CHUNK, NUMBERS // math.prod(shape)))
    for start in range(0, max(count, 1), size):
        yield np.arange(start, min(start + size, count))
