"""Charts: valid plotly figures that hold the report's numbers and few enough marks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from bubblefinder.render.kit.figure import label
from bubblefinder.render.kit.palette import CHART, COLOURS, PATTERNS, ROLE_COLOURS
from bubblefinder.render.report import charts
from bubblefinder.timeline.model import LEDGER_CLASSES
from tests.unit.report.sample import graph_report, hostile_report, sample_report, unseen_report

TOKENS = {*COLOURS, *CHART, *(f"role{number}" for number in range(len(ROLE_COLOURS)))}


def painted(value: Any) -> Any:
    """The figure with every placeholder made a colour; one the palette lacks stays, and plotly refuses it."""
    if isinstance(value, str) and value.startswith("@") and value[1:] in TOKENS:
        return "#123456"
    if isinstance(value, dict):
        return {key: painted(one) for key, one in value.items()}
    return [painted(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("report", [sample_report(gpus=2), graph_report(), hostile_report()])
def test_plotly_accepts_every_figure(report: Any) -> None:
    drawn = charts.figures(report)
    assert {"timeline-median", "run", "lengths", "leads"} <= set(drawn)
    for figure in drawn.values():
        go.Figure(painted(figure))


def test_nothing_to_draw_draws_nothing() -> None:
    assert charts.figures(unseen_report()) == {}


def test_the_stacked_bars_are_the_ledger() -> None:
    rows = sample_report().steps.rows
    drawn = charts.steps_over_the_run(rows)["data"]
    stacks = [sum(trace["y"][at] for trace in drawn) for at in range(len(rows))]
    assert stacks == pytest.approx([row.duration_ns / 1e6 for row in rows])
    opacity = drawn[0]["marker"]["opacity"]
    assert [one < 1 for one in opacity] == [row.excluded is not None for row in rows]


def test_long_runs_draw_means_of_neighbours() -> None:
    report = sample_report(steps=5000)
    figure = charts.steps_over_the_run(report.steps.rows)
    busy = next(trace for trace in figure["data"] if trace["name"] == "busy")
    assert len(busy["x"]) <= charts.MAX_STEPS
    assert sum(busy["y"]) / len(busy["y"]) == pytest.approx(6.399, abs=0.01)


def test_no_page_draws_more_marks_than_allowed() -> None:
    base = sample_report(steps=7000)
    bars = base.detail.timelines[0].bars * 6
    timelines = [replace(one, bars=bars) for one in base.detail.timelines]
    drawn = charts.figures(replace(base, detail=replace(base.detail, timelines=timelines)))
    assert sum(charts.marks(figure) for figure in drawn.values()) <= charts.MAX_MARKS


def test_the_histogram_keeps_the_counts_a_class_a_row() -> None:
    histograms = sample_report().detail.histograms
    figure = charts.gap_histogram(histograms)
    assert [trace["y"] for trace in figure["data"]] == [one.counts for one in histograms]
    assert len({trace["yaxis"] for trace in figure["data"]}) == len(histograms)
    assert figure["layout"]["xaxis"]["ticktext"] == ["100 ns", "1 us", "10 us", "100 us", "1 ms", "10 ms"]


def test_leads_are_those_of_the_leading_device() -> None:
    report = sample_report(gpus=2)
    figure = charts.launch_lead(report)
    assert [trace["name"] for trace in figure["data"]] == ["draft", "verify", "draft-extend"]
    assert sum(len(trace["x"]) for trace in figure["data"]) == len(report.detail.leads) // 2
    assert figure["data"][0]["y"][0] == -1.5


def test_labels_hold_no_tag_and_no_entity_of_their_own() -> None:
    text = json.dumps(charts.figures(hostile_report()))
    assert "<img" not in text
    assert "<script" not in text
    assert "&lt;img src=x" in text
    assert label("&lt;b&gt;<i>") == "&amp;lt;b&amp;gt;&lt;i&gt;"


def test_every_class_has_a_colour_and_no_two_look_alike() -> None:
    assert set(COLOURS) == set(LEDGER_CLASSES)
    assert len(set(COLOURS.values())) == len(COLOURS)
    idle = [name for name in LEDGER_CLASSES if name not in ("busy", "host_late")]
    assert len({PATTERNS[name] for name in idle}) == len(idle)


def test_one_long_window_does_not_flatten_the_decode_steps() -> None:
    rows = sample_report().steps.rows
    longest = max(row.duration_ns for row in rows if row.excluded is None)
    assert not charts.is_cut([replace(row, duration_ns=longest) for row in rows])
    head = replace(rows[0], duration_ns=40 * longest, excluded="head")
    drawn = charts.steps_over_the_run([head, *rows[1:]])
    low, high = drawn["layout"]["yaxis"]["range"]
    assert (low, charts.is_cut([head, *rows[1:]])) == (0, True)
    assert longest / 1e6 < high < 2 * longest / 1e6
    assert not charts.is_cut([])
