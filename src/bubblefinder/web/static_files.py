"""The files that come with the program: read and packed once, and not sent again to who has them."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from bubblefinder.render.kit.html import asset, style
from bubblefinder.web.limits import RefusedError
from bubblefinder.web.render import STATIC

if TYPE_CHECKING:
    from starlette.requests import Request

_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_STYLE: Final = "report.css"
_SCRIPTS: Final = {"plotly.js": "plotly-cartesian.min.js", "report.js": "page.js"}
"""What other pages carry in themselves, by its name here and there."""


@dataclass(frozen=True, slots=True)
class _File:
    plain: bytes
    packed: bytes
    tag: str
    media_type: str


async def static(request: Request) -> Response:
    """Send one of the files that come with the program."""
    file = _file(request.path_params["name"])
    headers = {"cache-control": "private, max-age=600", "etag": file.tag, "vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(file.plain, media_type=file.media_type, headers=headers | {"content-encoding": "identity"})
    return Response(file.packed, media_type=file.media_type, headers=headers | {"content-encoding": "gzip"})


@cache
def _known() -> frozenset[str]:
    return frozenset({_STYLE, *_SCRIPTS, *(path.name for path in STATIC.iterdir() if path.suffix in _TYPES)})


@cache
def _file(name: str) -> _File:
    if name not in _known():
        raise RefusedError(404, "There is nothing at this address.", hint="See the list of runs.")
    plain = _plain(name)
    tag = f'"{hashlib.sha256(plain).hexdigest()[:32]}"'
    return _File(plain, gzip.compress(plain, mtime=0), tag, _TYPES[name[name.rindex(".") :]])


def _plain(name: str) -> bytes:
    if name == _STYLE:
        return style().encode()
    return asset(_SCRIPTS[name]).encode() if name in _SCRIPTS else (STATIC / name).read_bytes()
