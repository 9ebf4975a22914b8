"""Predict for many requests together: while one batch is computed, the next one gathers."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import anyio
import numpy as np

from pren.foundation.errors import PrenError
from pren.label.predictions import Row
from pren.label.predictor import Predictor
from pren.methods.base import Method

log = logging.getLogger(__name__)

MOST = 128  # inputs at once: more make nothing faster
Photographs = Sequence[bytes]
OnBatch = Callable[[int], None]  # inputs of a batch


@dataclass(eq=False)
class Wanted:
    """The inputs of one request: the bytes of photographs, or (n, ...) numbers."""

    inputs: Photographs | np.ndarray[Any, Any]
    top: int
    among: str | None
    found: list[Row] | Exception | None = None
    answer: asyncio.Future[list[Row]] = field(init=False)

    def kind(self) -> tuple[bool, str | None]:
        """Requests of one kind can be predicted together."""
        return isinstance(self.inputs, np.ndarray), self.among


class Batcher:
    """Predicts what requests want, those that wait together as one batch, in a thread.

    Args:
        predictor: The model in use. `Predictor` is used by one thread at a time.
        on_batch: Called with the size of every batch.
    """

    def __init__(self, predictor: Predictor, on_batch: OnBatch) -> None:
        self.predictor = predictor
        self._on_batch = on_batch
        self._waiting: deque[Wanted] = deque()
        self._more = asyncio.Event()
        self._using = asyncio.Lock()
        self._work: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Batcher:
        self._work = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._work is not None
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)

    async def predict(self, wanted: Wanted) -> list[Row]:
        """The rows of a request, when its batch is done."""
        wanted.answer = asyncio.get_running_loop().create_future()
        self._waiting.append(wanted)
        self._more.set()
        return await wanted.answer

    async def change(self, make: Callable[[Method], Method]) -> None:
        """Use another model from the next batch on; it has no confidence, which was measured for the old one."""
        async with self._using:
            model = await anyio.to_thread.run_sync(make, self.predictor.model)
            changed = copy.copy(self.predictor)  # with the backbone that is in memory
            changed.model, changed.trust = model, None
            self.predictor = changed

    async def _run(self) -> None:
        while True:
            await self._more.wait()
            async with self._using:
                batch = self._next()
                if batch:
                    await anyio.to_thread.run_sync(_predict, self.predictor, batch, self._on_batch)
            for one in batch:
                _tell(one)

    def _next(self) -> list[Wanted]:
        """Requests of one kind, the first one's, in order."""
        self._waiting = deque(one for one in self._waiting if not one.answer.done())  # some have given up
        batch: list[Wanted] = []
        rest: deque[Wanted] = deque()
        for one in self._waiting:
            fits = not batch or sum(len(other.inputs) for other in batch) + len(one.inputs) <= MOST
            same = not batch or one.kind() == batch[0].kind()
            (batch if fits and same else rest).append(one)
        self._waiting = rest
        if not rest:
            self._more.clear()
        return batch


def _tell(one: Wanted) -> None:
    if one.answer.done():
        return
    if isinstance(one.found, Exception):
        one.answer.set_exception(one.found)
    else:
        one.answer.set_result(one.found or [])


def _predict(predictor: Predictor, batch: list[Wanted], on_batch: OnBatch) -> None:
    """Put rows, or what went wrong, beside every request; what is wrong with one must not hurt the others."""
    on_batch(sum(len(one.inputs) for one in batch))
    try:
        found = _rows(predictor, batch)
    except Exception as error:
        if len(batch) == 1:
            batch[0].found = error
            if not isinstance(error, PrenError):
                log.exception("Prediction failed.")
            return
        for one in batch:
            _predict(predictor, [one], on_batch)
        return
    for one in batch:
        rows, found = found[: len(one.inputs)], found[len(one.inputs) :]
        one.found = [row._replace(classes=row.classes[: one.top]) for row in rows]


def _rows(predictor: Predictor, batch: list[Wanted]) -> list[Row]:
    first = batch[0].inputs
    inputs: Any = (
        np.concatenate([one.inputs for one in batch])
        if isinstance(first, np.ndarray)
        else [content for one in batch for content in one.inputs]
    )
    return list(predictor.label(inputs, max(one.top for one in batch), batch[0].among).rows())
