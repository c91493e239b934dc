"""Answers that depend on nothing but the stored runs are kept until those change."""

from __future__ import annotations

import functools
import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from bubblefinder.web.render import COOKIE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from bubblefinder.web.store import Store

_MOST: Final = 128
_MOST_BYTES: Final = 16 << 20
"""Both bound what is kept, whatever is asked: the server itself needs about 60 MiB."""
_LEVEL: Final = 1
"""A list of 70 KB packs in 0.1 ms to 6 KB; higher levels take twice as long to save 1 KB of it."""


@dataclass(frozen=True, slots=True)
class _Kept:
    plain: bytes
    packed: bytes
    media_type: str


class Answers:
    """The latest answers by what was asked."""

    def __init__(self, store: Store) -> None:
        """Begin with none."""
        self._store = store
        self._version = store.version
        self._kept: dict[tuple[str, ...], _Kept] = {}
        self._bytes = 0

    def forget(self) -> None:
        """Make every answer afresh from now on."""
        self._kept.clear()
        self._bytes = 0

    def get(self, asked: tuple[str, ...]) -> Response | None:
        """Return the answer to a question that was asked since the runs last changed."""
        if self._version != self._store.version:
            self._version = self._store.version
            self.forget()
        kept = self._kept.get(asked)
        return None if kept is None else _told(asked, kept)

    def keep(self, asked: tuple[str, ...], answer: Response) -> Response:
        """Keep an answer and return it as it is given from then on."""
        if answer.status_code != 200 or self._version != self._store.version:  # noqa: PLR2004 - OK
            return answer
        plain = bytes(answer.body)
        packed = gzip.compress(plain, _LEVEL, mtime=0) if asked[-1] == "packed" else b""
        kept = _Kept(plain, packed, answer.headers["content-type"])
        self._bytes += len(plain) + len(packed)
        self._kept[asked] = kept
        while len(self._kept) > _MOST or self._bytes > _MOST_BYTES:
            oldest = self._kept.pop(next(iter(self._kept)))
            self._bytes -= len(oldest.plain) + len(oldest.packed)
        return _told(asked, kept)


def _told(asked: tuple[str, ...], kept: _Kept) -> Response:
    headers = {"vary": "Accept-Encoding"}
    if asked[-1] == "packed":
        return Response(kept.packed, media_type=kept.media_type, headers=headers | {"content-encoding": "gzip"})
    return Response(kept.plain, media_type=kept.media_type, headers=headers)


def kept(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Answer from what is kept. For endpoints whose answer follows from the stored runs and the request alone."""

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
        if found := answers.get(asked):
            return found
        return answers.keep(asked, await endpoint(request))

    return answered
