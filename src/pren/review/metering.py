"""What a watcher of the service wants to know, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from pren.foundation.errors import PrenError
from pren.review.app import RefusedError

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
INPUTS = (1, 2, 4, 8, 16, 32, 64, 128)


class Meter:
    """Counts predictions."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()  # not the one of the process: an application may be made twice
        self.requests = Counter("pren_requests", "Requests to predict.", ["status"], registry=self.registry)
        self.inputs = Counter("pren_inputs", "Inputs that were predicted.", registry=self.registry)
        self.seconds = Histogram(
            "pren_request_seconds", "From request to answer.", buckets=SECONDS, registry=self.registry
        )
        self.batches = Histogram(
            "pren_batch_inputs", "Inputs that were predicted together.", buckets=INPUTS, registry=self.registry
        )
        self.under_way = Gauge("pren_requests_under_way", "Requests that are not answered yet.", registry=self.registry)

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count a request, however it ends."""
        start, status = time.perf_counter(), 500
        self.under_way.inc()
        try:
            yield
            status = 200
        except RefusedError as error:
            status = error.status
            raise
        except PrenError:
            status = 400
            raise
        finally:
            self.under_way.dec()
            self.requests.labels(status).inc()
            self.seconds.observe(time.perf_counter() - start)


def metrics_router(meter: Meter) -> APIRouter:
    """What Prometheus reads."""
    router = APIRouter()

    @router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Counters, in the text format of Prometheus."""
        return Response(generate_latest(meter.registry), media_type=CONTENT_TYPE_LATEST)

    return router
