"""The chart of steps: the host above, the GPU below, gaps coloured by their class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit.figure import Figure, axis, label, layout, ms
from bubblefinder.render.kit.palette import KIND_COLOURS, token
from bubblefinder.report.sentences import KIND_LABELS
from bubblefinder.units import NS_PER_MS, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.report.charts import StepTimeline, TimelineBar

_NAMED: Final = {"replay": "paper", "blamed_wait": "paper", "wait": "paper", "nvtx": "ink"}
_HOVER: Final = "%{customdata[0]}<br>%{fullData.name}, %{customdata[2]} long<br>from %{customdata[1]}<extra></extra>"
_LANE_PIXELS: Final = 24
_HEIGHT: Final = 0.8
_THIN: Final = 0.12
_TITLE: Final = 0.85
"""Height of a track's title, in lanes."""
_APART: Final = 1.0
"""Lanes between one step and the next."""
_MAX_DEPTH: Final = 5


@dataclass(frozen=True, slots=True)
class Placed:
    """A bar of the step that begins at `origin_ns`, and the height of its lane: 0 on top, negative below."""

    bar: TimelineBar
    y: float
    origin_ns: int
    step: int = 0

    @property
    def start(self) -> float:
        """When it begins, in ms into its step."""
        return ms(self.bar.start_ns - self.origin_ns)

    @property
    def end(self) -> float:
        """When it ends, in ms into its step."""
        return ms(self.bar.end_ns - self.origin_ns)


def step_chart(steps: Sequence[tuple[str, StepTimeline]]) -> Figure:
    """Return the figure of named steps, one below the other, in ms from their start: a lane a track, a trace a kind."""
    placed, titles, depth = list[Placed](), list[tuple[str, float]](), 0.0
    for number, (name, step) in enumerate(steps):
        top = depth + _APART * number
        mine, tracks, deep = place_bars(step)
        placed += [replace(one, y=one.y - top, step=number) for one in mine]
        titles += [(f"{name}: {track}" if name else track, y - top) for track, y in tracks]
        depth = top + deep
    first = min(_first(step) for _, step in steps)
    shown = [one for one in placed if one.bar.kind != "drain"]
    traces = [_bars(kind, mine, first) for kind in KIND_LABELS if (mine := [p for p in shown if p.bar.kind == kind])]
    drains = [one for one in placed if one.bar.kind == "drain"]
    traces += [trace for trace in (_links(shown), _drains(drains)) if trace["x"]]
    last = max(ms(step.end_ns - step.start_ns) for _, step in steps)
    return {"data": traces, "layout": _layout(titles, depth, first, last)}


def place_bars(step: StepTimeline) -> tuple[list[Placed], list[tuple[str, float]], float]:
    """Return the bars with their lanes, the tracks with the height of their titles, and the depth of it all.

    Tracks keep their order. Bars of one track that overlap go to lanes below each other.
    """
    placed: list[Placed] = []
    titles: list[tuple[str, float]] = []
    top = 0.0
    for track in dict.fromkeys(bar.track for bar in step.bars):
        titles.append((track, -top))
        top += _TITLE
        ends: list[int] = []
        mine = (bar for bar in step.bars if bar.track == track)
        for bar in sorted(mine, key=lambda bar: (bar.start_ns, -bar.end_ns)):
            lane = next((lane for lane, end in enumerate(ends) if end <= bar.start_ns), len(ends))
            lane = min(lane, _MAX_DEPTH - 1)
            ends[lane : lane + 1] = [bar.end_ns]
            placed.append(Placed(bar, -top - lane, step.start_ns))
        top += len(ends)
    return placed, titles, top


def _first(step: StepTimeline) -> float:
    calls = [bar.start_ns - step.start_ns for bar in step.bars if bar.kind == "launch" and bar.link is not None]
    return ms(max(min([0, *calls]), -0.6 * (step.end_ns - step.start_ns)))


def _bars(kind: str, placed: Sequence[Placed], first: float) -> Figure:
    starts = [max(one.start, first) for one in placed]
    ends = [max(one.end, start) for one, start in zip(placed, starts, strict=True)]
    heights = [round(_HEIGHT * max(one.bar.fill, _THIN), 3) for one in placed]
    return {
        "type": "bar",
        "orientation": "h",
        "name": KIND_LABELS[kind],
        "base": starts,
        "x": [round(end - start, 6) for start, end in zip(starts, ends, strict=True)],
        "y": [round(one.y - 0.9 + height / 2, 3) for one, height in zip(placed, heights, strict=True)],
        "width": heights,
        "customdata": [[label(one.bar.name), *_when(one)] for one in placed],
        "hovertemplate": _HOVER,
        "marker": {"color": token(KIND_COLOURS.get(kind, kind)), "line": {"width": 0}},
    } | (_names(kind, placed) if kind in _NAMED else {})


def _names(kind: str, placed: Sequence[Placed]) -> Figure:
    return {
        "text": [label(one.bar.name, 60) for one in placed],
        "textposition": "inside",
        "insidetextanchor": "start",
        "textangle": 0,
        "textfont": {"color": token(_NAMED[kind]), "size": 11},
    }


def _when(one: Placed) -> tuple[str, str]:
    length = one.bar.end_ns - one.bar.start_ns
    into = (one.bar.start_ns - one.origin_ns) / NS_PER_MS
    return f"{into:.6f} ms into the step", f"{duration(length)} ({length:,} ns)"


def _links(placed: Sequence[Placed]) -> Figure:
    calls: dict[tuple[int, int | None], Placed] = {
        (p.step, p.bar.link): p for p in placed if p.bar.kind == "launch" and p.bar.link is not None
    }
    x: list[float | None] = []
    y: list[float | None] = []
    for one in placed:
        if one.bar.kind == "replay" and (call := calls.get((one.step, one.bar.link))):
            x += [call.start, one.start, None]
            y += [call.y - 0.9, one.y - 0.1, None]
    line = {"color": token("launch"), "width": 1, "dash": "dot"}
    return {"type": "scatter", "mode": "lines", "name": "launched", "x": x, "y": y, "line": line, "hoverinfo": "skip"}


def _drains(placed: Sequence[Placed]) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "drain: the GPU ran dry",
        "x": [one.start for one in placed],
        "y": [one.y - 0.02 for one in placed],
        "customdata": [label(one.bar.name) for one in placed],
        "hovertemplate": "%{customdata}<br>%{fullData.name}, %{x:.6f} ms into the step<extra></extra>",
        "marker": {
            "symbol": "triangle-down",
            "size": 11,
            "color": token("blamed"),
            "line": {"width": 1, "color": token("paper")},
        },
    }


def _layout(titles: Sequence[tuple[str, float]], depth: float, first: float, last: float) -> Figure:
    tracks = [
        {
            "text": label(track, 60),
            "x": 0,
            "y": y - _TITLE,
            "xref": "paper",
            "yref": "y",
            "xanchor": "left",
            "yanchor": "bottom",
            "yshift": -3,
            "showarrow": False,
            "font": {"size": 11, "color": token("muted")},
        }
        for track, y in titles
    ]
    return layout(
        round(_LANE_PIXELS * depth + 50),
        margin={"l": 4, "r": 4, "t": 4, "b": 44},
        barmode="overlay",
        annotations=tracks,
        uniformtext={"minsize": 9, "mode": "hide"},
        hovermode="closest",
        xaxis=axis(title="ms into the step", range=[first, last], zeroline=first < 0),
        yaxis=axis(range=[-depth - 0.1, 0], visible=False, fixedrange=True),
    )
