"""Serve a model: the service behind the guard."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI

from pren.label.predictor import Predictor
from pren.review.admission import Limits
from pren.review.app import make_app
from pren.review.batching import Batcher
from pren.review.guard import Access
from pren.review.metering import Meter, metrics_router
from pren.review.service import service_router
from pren.runs.classes import open_model
from pren.trust import Trust


def make_service(
    run: str | Path,
    access: Access,
    limits: Limits | None = None,
    weights: str | None = None,
) -> FastAPI:
    """The service of a run, or of a folder with a saved model.

    Args:
        run: The folder.
        access: Who may use it.
        limits: What it takes at most.
        weights: The file with the frozen backbone's weights, if it has moved.
    """
    routers, batcher = service_of(run, limits or Limits(), weights)
    return make_app(access, routers, [batcher])


def service_of(run: str | Path, limits: Limits, weights: str | None) -> tuple[list[APIRouter], Batcher]:
    """What answers for the model of `make_service`, and what has to run meanwhile."""
    meter, opened = Meter(), open_model(run)
    predictor = Predictor(opened.method, weights, trust=Trust.load(run))
    batcher = Batcher(predictor, meter.batches.observe)
    return [service_router(batcher, opened.recipe, limits, meter), metrics_router(meter)], batcher
