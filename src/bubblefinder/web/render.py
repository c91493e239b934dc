"""Pages from templates. Everything from a capture or a request is escaped, and words come from `units`."""

from __future__ import annotations

import secrets
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import HTMLResponse

from bubblefinder import units
from bubblefinder.render.kit import html
from bubblefinder.web import limits
from bubblefinder.web.pieces import Piece, Pieced, Pieces, piece
from bubblefinder.web.trend import words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Environment
    from markupsafe import Markup
    from starlette.requests import Request


HERE: Final = Path(__file__).parent
STATIC: Final = HERE / "static"
COOKIE: Final = "bubblefinder"
"""What somebody who signed in carries."""
_PLACE: Final = f"<{secrets.token_hex(16)}>"
"""Stands in a rendered page for a block that was made before; nobody who words a text on the page knows it."""


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,  # noqa: ANN401
) -> HTMLResponse:
    """Return a rendered template; it can use the request's nonce."""
    return HTMLResponse(_rendered(request, template, values), status, dict(headers or {}))


def pieced_page(
    request: Request,
    template: str,
    *,
    blocks: Mapping[str, Sequence[Piece]],
    pieces: Pieces,
    **values: Any,  # noqa: ANN401
) -> Pieced:
    """Return a rendered template with blocks in it that were made before, given in the order of their places."""
    from markupsafe import Markup

    def rendered(*_: object) -> tuple[Piece, ...]:
        return tuple(piece(text) for text in _rendered(request, template, values | places).split(_PLACE))

    places = {name: Markup(_PLACE) if block else "" for name, block in blocks.items()}  # noqa: S704 - ours
    asked = (template, request.url.query, request.url.netloc)
    first, *others = pieces.of(asked, (COOKIE in request.cookies, places, values), rendered)
    made = [first]
    for block, text in zip([block for block in blocks.values() if block], others, strict=True):
        made += [*block, text]
    return Pieced(made, "text/html; charset=utf-8")


def _rendered(request: Request, template: str, values: Mapping[str, Any]) -> str:
    found = environment().get_template(template)
    return found.render(nonce=request.state.nonce, is_signed_in=COOKIE in request.cookies, **values)


@cache
def environment() -> Environment:
    """Return the templates, with those of other pages."""
    made = html.environment("bubblefinder.web")
    made.filters |= {
        "share": units.share,
        "count": units.count,
        "size": limits.size,
        "moment": moment,
        "elapsed": elapsed,
        "change": change,
        "printable": units.printable,
        "sentence": sentence,
        "words": words,
    }
    return made


def row(macro: str, *values: object) -> Markup:
    """Return a row of a table, by its macro in ``rows.html``."""
    made: Markup = getattr(environment().get_template("rows.html").module, macro)(*values)
    return made


def sentence(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def moment(seconds: float | None) -> str:
    """Return a time of day as ``2026-03-01 14:05`` in UTC; an en dash for unknown."""
    return units.UNKNOWN if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))


def elapsed(seconds: float) -> str:
    """Return a time that passed as ``42 s``, ``3 min`` or ``5 h``."""
    for most, unit_s, unit in ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if seconds < most:
            return f"{seconds / unit_s:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def change(now: float | None, before: float | None) -> str:
    """Return how much more something is than it was, ``+6.2 %``; nothing where either is unknown."""
    if now is None or not before:
        return ""
    return f"{100 * (now / before - 1):+.1f} %".replace("-", "\N{MINUS SIGN}")
