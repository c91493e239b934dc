"""Answers that depend on nothing but the stored runs are kept until those change."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from starlette.responses import Response

from bubblefinder.web.render import COOKIE
from bubblefinder.web.service import service

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from starlette.requests import Request

    from bubblefinder.web.pieces import Pieced


def kept(
    version_of: Callable[[Request], Hashable], endpoint: Callable[[Request], Awaitable[Pieced]]
) -> Callable[[Request], Awaitable[Response]]:
    """Answer from what is kept.

    Args:
        version_of: what is another one whenever the answer to a request may be.
        endpoint: whose answer follows from the stored runs and the request alone.
    """

    @functools.wraps(endpoint)
    async def answered(request: Request) -> Response:
        answers = service(request).answers
        packs = "gzip" in request.headers.get("accept-encoding", "")
        host, is_signed_in = request.headers.get("host", ""), str(COOKIE in request.cookies)
        asked = (request.url.path, request.url.query, host, is_signed_in, str(packs))
        version = version_of(request)
        known: tuple[bytes, str] | None = answers.get(asked, version)
        if known is None:
            made = await endpoint(request)
            body = made.gzipped() if packs else bytes(made.body)
            known = answers.put(asked, version, (body, made.headers["content-type"]), len(body))
        headers = {"vary": "Accept-Encoding"} | ({"content-encoding": "gzip"} if packs else {})
        return Response(known[0], media_type=known[1], headers=headers)

    return answered


def of_runs(request: Request) -> Hashable:
    """Return the version of what follows from any run."""
    return service(request).store.version


def of_label(request: Request) -> Hashable:
    """Return the version of what follows from the finished runs of the label asked for."""
    return service(request).store.shelf.version(request.query_params.get("label", ""))
