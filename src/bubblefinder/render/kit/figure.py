"""What all charts share: their layout, labels and the markers of ledger classes."""

from __future__ import annotations

from html import escape
from typing import Any, TypeAlias

from bubblefinder.render.kit.palette import PATTERNS, token
from bubblefinder.report.sentences import plain
from bubblefinder.units import NS_PER_MS

Figure: TypeAlias = dict[str, Any]


def label(text: str | None, limit: int = 90) -> str:
    """Return a name for a chart: plotly reads tags and entities in labels, so none may survive."""
    return escape(plain(text, limit), quote=False)


def ms(ns: float) -> float:
    """Return a time in milliseconds, exact to the nanosecond."""
    return round(ns / NS_PER_MS, 6)


def axis(**more: object) -> Figure:
    """Return an axis in the house style."""
    grid = token("grid")
    title = {"title": {"text": more.pop("title"), "standoff": 8}} if "title" in more else {}
    return {"gridcolor": grid, "zerolinecolor": grid, "linecolor": grid, "automargin": True} | title | more


def layout(height: int, **more: object) -> Figure:
    """Return the layout that all charts share; `more` wins."""
    hover = {"bgcolor": token("paper"), "bordercolor": token("muted"), "font": {"color": token("ink")}, "align": "left"}
    return {
        "height": height,
        "margin": {"l": 48, "r": 8, "t": 8, "b": 44},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": token("muted")},
        "hoverlabel": hover,
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"},
        "dragmode": "zoom",
        "showlegend": False,
        "xaxis": axis(),
        "yaxis": axis(),
    } | more


def class_marker(name: str) -> Figure:
    """Return the colour and the pattern of a ledger class."""
    lines = {"fgcolor": token("paper"), "fgopacity": 0.5, "size": 6, "solidity": 0.2, "fillmode": "overlay"}
    return {"color": token(name), "line": {"width": 0}, "pattern": {"shape": PATTERNS.get(name, "")} | lines}
