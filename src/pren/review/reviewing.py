"""Review a run: the page behind the guard, and the service on the same address."""

from __future__ import annotations

from fastapi import FastAPI

from pren.review.admission import Limits
from pren.review.app import make_app
from pren.review.guard import Access
from pren.review.page import page_router
from pren.review.serving import service_of
from pren.review.session import Session


def make_review(session: Session, access: Access) -> FastAPI:
    """The application of a review. Its service predicts with the model that the run has kept.

    Args:
        session: What is reviewed; whoever opened it closes it.
        access: Who may use it.
    """
    routers, batcher = service_of(session.run, Limits(), session.moved.get("weights"))
    return make_app(access, [page_router(session), *routers], [session, batcher])
