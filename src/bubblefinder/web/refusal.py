"""Errors as responses: JSON for programs, a page for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from bubblefinder.web.limits import RefusedError
from bubblefinder.web.render import page

if TYPE_CHECKING:
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response

_TITLES = {401: "Sign in first", 404: "Not here", 403: "Refused", 413: "Too large", 415: "Not a trace"}


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
    status = _status(error)
    messages = {404: "There is nothing at this address.", 405: "This address doesn't take such requests."}
    message = messages.get(status, "The request could not be answered.")
    return refusal(request, RefusedError(status, message, hint="See the list of runs."))


def _status(error: Exception | HTTPException) -> int:
    return getattr(error, "status_code", 500)
