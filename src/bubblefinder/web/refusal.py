"""Errors as responses: JSON for programs, a page for people."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, cast

from starlette.responses import JSONResponse

from bubblefinder.web.limits import NO_ROOM, RefusedError, disk_full
from bubblefinder.web.render import page
from bubblefinder.web.store import is_out_of_room

if TYPE_CHECKING:
    import sqlite3

    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response

_log = logging.getLogger(__name__)
_TITLES: Final = {
    410: "Not here any more",
    401: "Sign in first",
    404: "Not here",
    403: "Refused",
    413: "Too large",
    415: "Not a trace",
}


def refusal(request: Request, error: RefusedError) -> Response:
    """Return a response that says what is wrong and what to do."""
    headers = {"connection": "close"} if request.method in {"PUT", "POST"} else {}
    if error.status == 401:  # noqa: PLR2004 - unauthorised
        headers["www-authenticate"] = "Bearer"
    if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"error": str(error), "hint": error.hint}, error.status, headers)
    title = _TITLES.get(error.status, "That didn't work")
    return page(request, "error.html", status=error.status, headers=headers, title=title, error=error)


async def on_refused(request: Request, error: Exception) -> Response:
    """Answer a request that a limit or a check turned down."""
    return refusal(request, error if isinstance(error, RefusedError) else RefusedError(400, str(error)))


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer what the router could not."""
    status = cast("HTTPException", error).status_code
    messages = {404: "There is nothing at this address.", 405: "This address doesn't take such requests."}
    message = messages.get(status, "The request could not be answered.")
    return refusal(request, RefusedError(status, message, hint="See the list of runs."))


async def on_broken_disk(request: Request, error: Exception) -> Response:
    """Answer what the disk or the database refused."""
    full = error.errno in NO_ROOM if isinstance(error, OSError) else is_out_of_room(cast("sqlite3.Error", error))
    _log.error("%s %s: %s", request.method, request.url.path, error)
    hint = "See the server's log."
    return refusal(request, disk_full() if full else RefusedError(500, "The server's disk failed.", hint=hint))


async def on_mistake(request: Request, _error: Exception) -> Response:
    """Answer after a mistake of ours, which is logged."""
    return refusal(request, RefusedError(500, "The server made a mistake.", hint="See its log, and please report it."))
