"""Review a run: the page behind the guard, and the service on the same address."""

from __future__ import annotations

from fastapi import FastAPI

from pren.review.app import make_app
from pren.review.guard import Access
from pren.review.page import page_router
from pren.review.session import Session


def make_review(session: Session, access: Access) -> FastAPI:
    """The application of a review.

    Args:
        session: What is reviewed; whoever opened it closes it.
        access: Who may use it.
    """
    return make_app(access, [page_router(session)], [session])
