"""The application: routes, and what wraps them."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route

from bubblefinder.errors import BubblefinderError
from bubblefinder.web import api, operator, pages
from bubblefinder.web.bodies import Bodies
from bubblefinder.web.refusal import on_broken_disk, on_http_error, on_mistake, on_refused
from bubblefinder.web.safety import Safety
from bubblefinder.web.static_files import static

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from bubblefinder.web.service import Service

_WORTH_PACKING: Final = 2_000


def create_app(service: Service) -> ASGIApp:
    """Return the application that serves a data folder; whatever it answers, a crash too, goes through Safety."""
    app = Starlette(
        routes=[*pages.ROUTES, *api.ROUTES, *operator.ROUTES, Route("/static/{name}", static)],
        middleware=[Middleware(GZipMiddleware, minimum_size=_WORTH_PACKING, compresslevel=4)],
        exception_handlers={
            BubblefinderError: on_refused,
            HTTPException: on_http_error,
            sqlite3.Error: on_broken_disk,
            OSError: on_broken_disk,
            Exception: on_mistake,
        },
        lifespan=service.lifespan,
    )
    app.state.service = service
    return Bodies(Safety(app, token=service.token, guesses=service.guesses), service.limits)
