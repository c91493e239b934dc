"""Pages that work offline, under a policy that allows only their own inline parts."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit import palette
from bubblefinder.render.kit.sheet import CLASS_COLUMNS, Sheet
from bubblefinder.report.sentences import CLASS_LABELS, plain
from bubblefinder.units import duration, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment

    from bubblefinder.render.kit.bars import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """What a page adds to a table; the rows of each are those of the table.

    Attributes:
        bars: what is drawn in a column behind the first, which `drawn` is the header of.
        spans: where each row lies in the capture; null for nowhere.
        names: the whole names of the first cells, which hold their beginnings.
        is_folded: the table opens on a click: it holds the numbers of a chart.
        is_sortable: a click on a header sorts the rows.
    """

    bars: Sequence[Sequence[Segment]] = ()
    drawn: str = ""
    spans: Sequence[tuple[int, int] | None] = ()
    names: Sequence[Sequence[str]] = ()
    is_folded: bool = False
    is_sortable: bool = False


_SAFE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def write(sheet: Sheet) -> str:
    """Return a page with the verdict and every table."""
    return page(sheet.title, environment().get_template("sheet.html.j2").render(sheet=sheet))


def page(title: str, body: str, *, charts: bool = False) -> str:
    """Return a whole page around a body that is safe already; with charts it carries what draws them."""
    scripts, styles = [asset("page.js")], [style()]
    if charts:
        scripts.insert(0, asset("plotly-cartesian.min.js"))
        styles.append("")
    template = environment().get_template("page.html.j2")
    return template.render(
        title=title, policy=content_policy(scripts, styles), style=style(), body=body, scripts=scripts, charts=charts
    )


def content_policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return the content security policy that allows these inline parts and nothing else."""
    allowed = [" ".join(f"'sha256-{_digest(part)}'" for part in parts) for parts in (scripts, styles)]
    policies = [f"{kind} {parts}" for kind, parts in zip(("script-src", "style-src"), allowed, strict=True) if parts]
    return "; ".join(["default-src 'none'", *policies, "base-uri 'none'", "form-action 'none'"])


@cache
def style() -> str:
    """Return the style of every page; the reader's system decides the theme, unless the page was told otherwise."""
    light, dark = palette.css_variables(0), palette.css_variables(1)
    fills = "".join(f".f-{name}{{fill:var(--c-{name})}}" for name in palette.COLOURS | palette.CHART)
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media (prefers-color-scheme: dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        f"{fills}\n{asset('page.css')}"
    )


@cache
def asset(name: str) -> str:
    """Return a file that pages carry: plotly, or what draws the figures of a page with it and makes tables sortable."""
    return (files("bubblefinder.render.kit") / "assets" / name).read_text("utf-8")


def harmless(text: str) -> str:
    """Return JSON that can't end the script element it stands in."""
    for character, escaped in _SAFE.items():
        text = text.replace(character, escaped)
    return text


@cache
def environment(package: str = "bubblefinder.render.kit") -> Environment:
    """Return the templates of a package, with those of the kit; everything put into them is escaped."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("bubblefinder.render.kit")]),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"plain": plain, "plural": plural, "duration": duration}
    made.globals |= {
        "CLASS_COLUMNS": CLASS_COLUMNS,
        "plainly": Extra(),
        "class_of": {label: name for name, label in CLASS_LABELS.items()},
    }
    return made


def compile_templates(made: Environment) -> None:
    """Compile every template that there is, before there is a page to write."""
    for name in made.list_templates():
        made.get_template(name)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
