"""The charts of a report, as plotly figures in plain dictionaries; colours are placeholders for the theme's."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit.figure import Figure, axis, class_marker, label, layout, ms
from bubblefinder.render.kit.palette import ROLE_COLOURS, token
from bubblefinder.render.kit.step_chart import step_chart
from bubblefinder.report.model import mean_of
from bubblefinder.report.sentences import class_label
from bubblefinder.timeline.model import LEDGER_CLASSES
from bubblefinder.units import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bubblefinder.report.charts import Histogram
    from bubblefinder.report.model import Report, Stats, StepRow

MAX_MARKS: Final = 20_000
MAX_STEPS: Final = 400
MAX_LEADS: Final = 3_000
_CUT: Final = 1.6
"""The axis of the steps ends at so many of the longest decode step: higher bars are cut, decode keeps its height."""
SYMBOLS: Final = ("circle", "diamond", "square", "triangle-up", "cross")


def figures(report: Report) -> dict[str, Figure]:
    """Return the charts that the report has data for, by the id of their place on the page."""
    drawn = {f"timeline-{one.which}": step_chart([("", one)]) for one in report.detail.timelines}
    rows = leading_rows(report)
    if rows and ledger_known(report.steps.per_step):
        drawn["run"] = steps_over_the_run(rows)
    if histograms := filled_histograms(report):
        drawn["lengths"] = gap_histogram(histograms)
    if report.detail.leads:
        drawn["leads"] = launch_lead(report)
    return drawn


def ledger_known(per_step: Mapping[str, Stats]) -> bool:
    """Say whether the classes that were measured add up to the step: they don't where graph work went unseen."""
    whole = mean_of(per_step, "duration") or 0
    parts = sum(mean_of(per_step, name) or 0 for name in LEDGER_CLASSES)
    return whole > 0 and abs(parts - whole) < 1


def marks(figure: Figure) -> int:
    """Return how many marks a figure draws."""
    return sum(len(trace["x"]) for trace in figure["data"])


def leading_rows(report: Report) -> list[StepRow]:
    """Return the windows of the device whose steps lead the report."""
    steps = report.steps
    return [row for row in steps.rows if (row.gpu, row.pid) == (steps.gpu, steps.pid)]


def filled_histograms(report: Report) -> list[Histogram]:
    """Return the histograms that count something."""
    return [histogram for histogram in report.detail.histograms if sum(histogram.counts)]


def is_cut(rows: Sequence[StepRow]) -> bool:
    """Say whether windows of the run are longer than the chart of its steps shows."""
    return bool(rows) and bool(_reach(chunks(rows, MAX_STEPS)))


def steps_over_the_run(rows: Sequence[StepRow]) -> Figure:
    """Return stacked bars, one a window and one colour a class; long runs show means of neighbours."""
    bins = chunks(rows, MAX_STEPS)
    opacity = [0.4 if any(row.excluded for row in part) else 1.0 for part in bins]
    traces = []
    for name in LEDGER_CLASSES:
        values = [_mean(getattr(row, f"{name}_ns") for row in part) for part in bins]
        if any(values):
            traces.append(
                {
                    "type": "bar",
                    "name": class_label(name),
                    "x": [part[0].index for part in bins],
                    "y": [ms(value) for value in values],
                    "customdata": [duration(value) for value in values],
                    "hovertemplate": "%{customdata}",
                    "marker": class_marker(name) | {"opacity": opacity},
                }
            )
    return {"data": traces, "layout": _steps_layout(bins)}


def gap_histogram(histograms: Sequence[Histogram]) -> Figure:
    """Return one row of bars a class over a shared logarithmic time axis."""
    edges = histograms[0].edges_ns
    rows = len(histograms)
    spans = [f"{duration(low)} to {duration(high)}" for low, high in pairwise(edges)]
    traces = [
        {
            "type": "bar",
            "name": class_label(histogram.gap_class),
            "x": [index + 0.5 for index in range(len(histogram.counts))],
            "y": list(histogram.counts),
            "customdata": spans,
            "hovertemplate": "%{fullData.name}: %{y:,} gaps of %{customdata}<extra></extra>",
            "marker": class_marker(histogram.gap_class),
            "yaxis": _row_name("y", row),
        }
        for row, histogram in enumerate(histograms)
    ]
    axes = {_row_name("yaxis", row): _row_axis(row, rows) for row in range(rows)}
    titles = [_row_title(row, rows, class_label(histogram.gap_class)) for row, histogram in enumerate(histograms)]
    return {
        "data": traces,
        "layout": layout(84 * rows + 56, bargap=0.08, annotations=titles, xaxis=_log_axis(edges, rows), **axes),
    }


def launch_lead(report: Report) -> Figure:
    """Return the launch lead of each graph launch over the steps; below zero the GPU had run dry."""
    leading = (report.steps.gpu, report.steps.pid)
    leads = [lead for lead in report.detail.leads if (lead.gpu, lead.pid) == leading] or report.detail.leads
    leads = leads[:: math.ceil(len(leads) / MAX_LEADS)]
    traces = []
    for number, role in enumerate(dict.fromkeys(lead.role for lead in leads)):
        mine = [lead for lead in leads if lead.role == role]
        colour = token(f"role{number % len(ROLE_COLOURS)}")
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": label(role or "no role", 40),
                "x": [lead.index for lead in mine],
                "y": [ms(lead.lead_ns) for lead in mine],
                "customdata": [duration(lead.lead_ns) for lead in mine],
                "hovertemplate": "%{fullData.name}, window %{x}: %{customdata}<extra></extra>",
                "marker": {"size": 7, "symbol": SYMBOLS[number % len(SYMBOLS)], "color": colour},
            }
        )
    zero = axis(title="lead, ms", zerolinecolor=token("ink"), zerolinewidth=1.5, fixedrange=True)
    margin = {"l": 48, "r": 8, "t": 40, "b": 44}
    return {
        "data": traces,
        "layout": layout(280, showlegend=True, margin=margin, xaxis=axis(title="window"), yaxis=zero),
    }


def chunks(rows: Sequence[StepRow], limit: int) -> list[Sequence[StepRow]]:
    """Return at most `limit` runs of neighbouring rows."""
    size = math.ceil(len(rows) / limit)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _mean(values: Iterable[int | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0


def _steps_layout(bins: Sequence[Sequence[StepRow]]) -> Figure:
    gap = 0.12 if len(bins) < MAX_STEPS // 4 else 0
    return layout(
        320,
        barmode="stack",
        bargap=gap,
        hovermode="x unified",
        showlegend=True,
        margin={"l": 48, "r": 8, "t": 48, "b": 44},
        xaxis=axis(title="window", showspikes=False),
        yaxis=axis(title="ms", fixedrange=True, **_reach(bins)),
    )


def _reach(bins: Sequence[Sequence[StepRow]]) -> dict[str, object]:
    """Return an axis that fits the decode steps, where a head or tail many times as long would flatten them."""
    lengths = [(_mean(row.duration_ns for row in part), any(row.excluded for row in part)) for part in bins]
    longest = max((length for length, excluded in lengths if not excluded), default=0)
    cut = [length for length, _ in lengths if length > _CUT * longest]
    return {"range": [0, ms(_CUT * longest)]} if longest and cut else {}


def _row_name(axis_name: str, row: int) -> str:
    return axis_name if row == 0 else f"{axis_name}{row + 1}"


def _log_axis(edges: Sequence[int], rows: int) -> Figure:
    logs = [math.log10(edge) for edge in edges]
    bins_per_decade = (len(edges) - 1) / (logs[-1] - logs[0])
    decades = range(math.ceil(logs[0] - 1e-3), math.floor(logs[-1] + 1e-3) + 1)
    return axis(
        title="length of the gap, logarithmic",
        tickvals=[(decade - logs[0]) * bins_per_decade for decade in decades],
        ticktext=[_decade(decade) for decade in decades],
        range=[0, len(edges) - 1],
        anchor=_row_name("y", rows - 1),
    )


def _decade(power: int) -> str:
    units = ("ns", "us", "ms", "s")
    unit = min(power // 3, len(units) - 1)
    return f"{10 ** (power - 3 * unit)} {units[unit]}"


def _row_axis(row: int, rows: int) -> Figure:
    domain = [1 - (row + 0.74) / rows, 1 - row / rows]
    return axis(domain=domain, nticks=3, fixedrange=True, rangemode="tozero")


def _row_title(row: int, rows: int, text: str) -> Figure:
    corner = {"x": 1, "y": 1 - row / rows, "xref": "paper", "yref": "paper", "xanchor": "right", "yanchor": "top"}
    return {"text": text, "showarrow": False, "font": {"color": token("ink"), "size": 12}, **corner}
