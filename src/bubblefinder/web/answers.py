"""Answers that depend on nothing but the stored runs are kept until those change."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from bubblefinder.web.render import COOKIE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from starlette.requests import Request

    from bubblefinder.web.pieces import Pieced
    from bubblefinder.web.store import Store

_MOST: Final = 128
_MOST_BYTES: Final = 16 << 20
"""Both bound what is kept, whatever is asked: the server itself needs about 60 MiB."""


@dataclass(frozen=True, slots=True)
class _Kept:
    version: Hashable
    plain: bytes
    packed: bytes
    media_type: str


class Answers:
    """The latest answers by what was asked, each for as long as the version of what it follows from stays."""

    def __init__(self) -> None:
        """Begin with none."""
        self._kept: dict[tuple[str, ...], _Kept] = {}
        self._bytes = 0

    def get(self, asked: tuple[str, ...], version: Hashable) -> Response | None:
        """Return the answer to a question that was asked before, if nothing it follows from has changed."""
        kept = self._kept.get(asked)
        return None if kept is None or kept.version != version else _told(asked, kept)

    def keep(self, asked: tuple[str, ...], version: Hashable, answer: Pieced) -> Response:
        """Keep an answer and return it as it is given from then on."""
        self._drop(asked)
        packed = answer.gzipped() if asked[-1] == "packed" else b""
        kept = self._kept[asked] = _Kept(version, bytes(answer.body), packed, answer.headers["content-type"])
        self._bytes += len(kept.plain) + len(kept.packed)
        while len(self._kept) > _MOST or self._bytes > _MOST_BYTES:
            self._drop(next(iter(self._kept)))
        return _told(asked, kept)

    def _drop(self, asked: tuple[str, ...]) -> None:
        kept = self._kept.pop(asked, None)
        if kept is not None:
            self._bytes -= len(kept.plain) + len(kept.packed)


def _told(asked: tuple[str, ...], kept: _Kept) -> Response:
    headers = {"vary": "Accept-Encoding"}
    if asked[-1] == "packed":
        return Response(kept.packed, media_type=kept.media_type, headers=headers | {"content-encoding": "gzip"})
    return Response(kept.plain, media_type=kept.media_type, headers=headers)


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
        answers: Answers = request.app.state.service.answers
        asked = (
            request.url.path,
            request.url.query,
            request.headers.get("host", ""),
            str(COOKIE in request.cookies),
            "packed" if "gzip" in request.headers.get("accept-encoding", "") else "plain",
        )
        version = version_of(request)
        return answers.get(asked, version) or answers.keep(asked, version, await endpoint(request))

    return answered


def of_runs(request: Request) -> Hashable:
    """Return the version of what follows from any run."""
    store: Store = request.app.state.service.store
    return store.version


def of_label(request: Request) -> Hashable:
    """Return the version of what follows from the finished runs of the label asked for."""
    store: Store = request.app.state.service.store
    return store.shelf.version(request.query_params.get("label", ""))
