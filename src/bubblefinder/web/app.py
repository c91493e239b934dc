"""The application: routes, what wraps them, and the files they need."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from bubblefinder.errors import BubblefinderError
from bubblefinder.web import api, pages
from bubblefinder.web.limits import RefusedError
from bubblefinder.web.refusal import on_broken_disk, on_http_error, on_mistake, on_refused
from bubblefinder.web.render import STATIC
from bubblefinder.web.safety import Safety

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from bubblefinder.web.service import Service

_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_WORTH_PACKING: Final = 2_000
_CACHED: Final = {"cache-control": "private, max-age=600"}


def create_app(service: Service) -> ASGIApp:
    """Return the application that serves a data folder; whatever it answers, a crash too, goes through Safety."""
    app = Starlette(
        routes=[*pages.ROUTES, *api.ROUTES, Route("/static/{name}", static)],
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
    return Safety(app, token=service.token)


async def static(request: Request) -> Response:
    """Send one of the files that come with the program."""
    name = request.path_params["name"]
    if name in _REPORT_ASSETS:
        return Response(_report_asset(name), media_type=_TYPES[name[name.rindex(".") :]], headers=_CACHED)
    path = next((path for path in STATIC.iterdir() if path.name == name), None)
    if path is None:
        raise RefusedError(404, "There is nothing at this address.", hint="See the list of runs.")
    return FileResponse(path, media_type=_TYPES[path.suffix], headers=_CACHED)


_REPORT_ASSETS: Final = {"plotly.js": "plotly", "report.js": "script", "report.css": "style"}


def _report_asset(name: str) -> str:
    from bubblefinder.render.report.html import report_assets

    content: str = getattr(report_assets(), _REPORT_ASSETS[name])
    return content
