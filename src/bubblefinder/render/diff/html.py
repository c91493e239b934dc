"""A comparison as one HTML file that works offline."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from bubblefinder.compare import json
from bubblefinder.compare.sentences import MARKS, capture_name, rests_on, title_and_rest
from bubblefinder.render.diff.pictures import LANE, WIDTH, legend, timelines, waterfalls
from bubblefinder.render.diff.tables import tables
from bubblefinder.render.kit import palette
from bubblefinder.render.report.html import content_policy
from bubblefinder.report.sentences import plain
from bubblefinder.units import plural

if TYPE_CHECKING:
    from jinja2 import Environment

    from bubblefinder.compare.model import Diff

ELEMENT_ID: Final = "bubblefinder-diff"
_SAFE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def render(diff: Diff) -> str:
    """Return the whole page, with the comparison embedded as JSON."""
    names = " against ".join(plain(side[0].name, 60) for side in (diff.base, diff.head))
    return page(f"{names} · bubblefinder diff", body(diff))


def page(title: str, content: str) -> str:
    """Return a whole page around a body that is safe already."""
    template = environment().get_template("page.html.j2")
    return template.render(title=title, policy=content_policy((), (style(),)), style=style(), body=content)


def body(diff: Diff) -> str:
    """Return what stands between <body> and </body>; any page that loads `style()` can carry it."""
    verdict, rest = title_and_rest(diff)
    return (
        environment()
        .get_template("diff.html.j2")
        .render(
            diff=diff,
            verdict=verdict,
            rest=rest,
            rests_on=rests_on(diff),
            sides=[("base", diff.base), ("head", diff.head)],
            waterfalls=waterfalls(diff),
            timelines=timelines(diff),
            tables=tables(diff),
            embedded=harmless(json.render(diff)),
            element_id=ELEMENT_ID,
        )
    )


@cache
def style() -> str:
    """Return the style sheet of comparisons, budgets and trends, with the palette of both themes."""
    light, dark = palette.css_variables(0), palette.css_variables(1)
    colours = "".join(f".c-{name}{{fill:var(--c-{name})}}" for name in palette.COLOURS | palette.CHART)
    sheet = (files("bubblefinder.render.diff") / "assets" / "compare.css").read_text("utf-8")
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media (prefers-color-scheme: dark){{:root{{{dark}}}}}{colours}\n{sheet}"
    )


def harmless(text: str) -> str:
    """Return JSON that can't end the script element it stands in."""
    for character, escaped in _SAFE.items():
        text = text.replace(character, escaped)
    return text


@cache
def environment() -> Environment:
    """Return the templates of this package; everything put into them is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("bubblefinder.render.diff"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"plain": plain, "capture_name": capture_name, "legend": legend, "plural": plural}
    made.globals |= {"WIDTH": WIDTH, "LANE": LANE, "MARKS": MARKS}
    return made
