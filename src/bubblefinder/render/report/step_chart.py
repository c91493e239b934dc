"""The chart of one step: the host above, the GPU below, gaps coloured by their class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit.drawing import TITLE, Placed, place_bars
from bubblefinder.render.kit.palette import KIND_COLOURS, token
from bubblefinder.render.report.chart_style import Figure, axis, label, layout, ms
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


def step_timeline(timeline: StepTimeline) -> Figure:
    """Return the figure of a step: one lane a track, one trace a kind, in ms from the step's start."""
    placed, titles, depth = place_bars(timeline.bars)
    first_ms = _first_ms(timeline)
    shown = [one for one in placed if one.bar.kind != "drain"]
    traces = [
        _bars(timeline, kind, mine, first_ms)
        for kind in KIND_LABELS
        if (mine := [one for one in shown if one.bar.kind == kind])
    ]
    drains = [one for one in placed if one.bar.kind == "drain"]
    traces += [trace for trace in (_links(timeline, shown), _drains(timeline, drains)) if trace["x"]]
    return {"data": traces, "layout": _layout(timeline, titles, depth, first_ms)}


def _first_ms(timeline: StepTimeline) -> float:
    calls = [bar.start_ns - timeline.start_ns for bar in timeline.bars if bar.kind == "launch" and bar.link is not None]
    length = timeline.end_ns - timeline.start_ns
    return ms(max(min([0, *calls]), -0.6 * length))


def _bars(timeline: StepTimeline, kind: str, placed: Sequence[Placed], first_ms: float) -> Figure:
    starts = [max(ms(one.bar.start_ns - timeline.start_ns), first_ms) for one in placed]
    ends = [max(ms(one.bar.end_ns - timeline.start_ns), start) for one, start in zip(placed, starts, strict=True)]
    heights = [round(_HEIGHT * max(one.bar.fill, _THIN), 3) for one in placed]
    return {
        "type": "bar",
        "orientation": "h",
        "name": KIND_LABELS[kind],
        "base": starts,
        "x": [round(end - start, 6) for start, end in zip(starts, ends, strict=True)],
        "y": [round(one.y - 0.9 + height / 2, 3) for one, height in zip(placed, heights, strict=True)],
        "width": heights,
        "customdata": [[label(one.bar.name), *_when(timeline, one.bar)] for one in placed],
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


def _when(timeline: StepTimeline, bar: TimelineBar) -> tuple[str, str]:
    length = bar.end_ns - bar.start_ns
    return (
        f"{(bar.start_ns - timeline.start_ns) / NS_PER_MS:.6f} ms into the step",
        f"{duration(length)} ({length:,} ns)",
    )


def _links(timeline: StepTimeline, placed: Sequence[Placed]) -> Figure:
    launches = {one.bar.link: one for one in placed if one.bar.kind == "launch" and one.bar.link is not None}
    x: list[float | None] = []
    y: list[float | None] = []
    for one in placed:
        if one.bar.kind == "replay" and one.bar.link in launches:
            call = launches[one.bar.link]
            x += [ms(call.bar.start_ns - timeline.start_ns), ms(one.bar.start_ns - timeline.start_ns), None]
            y += [call.y - 0.9, one.y - 0.1, None]
    line = {"color": token("launch"), "width": 1, "dash": "dot"}
    return {"type": "scatter", "mode": "lines", "name": "launched", "x": x, "y": y, "line": line, "hoverinfo": "skip"}


def _drains(timeline: StepTimeline, placed: Sequence[Placed]) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "drain: the GPU ran dry",
        "x": [ms(one.bar.start_ns - timeline.start_ns) for one in placed],
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


def _layout(timeline: StepTimeline, titles: Sequence[tuple[str, float]], depth: float, first_ms: float) -> Figure:
    tracks = [
        {
            "text": label(track, 60),
            "x": 0,
            "y": y - TITLE,
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
        xaxis=axis(
            title="ms into the step", range=[first_ms, ms(timeline.end_ns - timeline.start_ns)], zeroline=first_ms < 0
        ),
        yaxis=axis(range=[-depth - 0.1, 0], visible=False, fixedrange=True),
    )
