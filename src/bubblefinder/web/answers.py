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
        if kept is None:
            return None
        if asked[-1] == "packed":
            headers = {"content-encoding": "gzip", "vary": "Accept-Encoding"}
            return Response(kept.packed, media_type=kept.media_type, headers=headers)
        return Response(kept.plain, media_type=kept.media_type, headers={"vary": "Accept-Encoding"})

    def keep(self, asked: tuple[str, ...], answer: Response) -> None:
        """Keep an answer."""
        if answer.status_code != 200 or self._version != self._store.version:  # noqa: PLR2004 - OK
            return
        plain = bytes(answer.body)
        packed = gzip.compress(plain, compresslevel=4, mtime=0) if asked[-1] == "packed" else b""
        self._bytes += len(plain) + len(packed)
        self._kept[asked] = _Kept(plain, packed, answer.headers["content-type"])
        while len(self._kept) > _MOST or self._bytes > _MOST_BYTES:
            oldest = self._kept.pop(next(iter(self._kept)))
            self._bytes -= len(oldest.plain) + len(oldest.packed)


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
        answer = await endpoint(request)
        answers.keep(asked, answer)
        return answer

    return answered
