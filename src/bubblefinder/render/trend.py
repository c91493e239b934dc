"""A metric over time, for the terminal and as a page."""

from __future__ import annotations

from typing import Final

from bubblefinder.compare.history import record_of
from bubblefinder.compare.limit_syntax import format_limit
from bubblefinder.compare.sentences import place
from bubblefinder.compare.trend import SHORTEST, Point, Shift, Trend
from bubblefinder.render.kit.chart import chart
from bubblefinder.render.kit.html import environment, page
from bubblefinder.render.kit.sheet import Level, Sheet, Table
from bubblefinder.render.kit.text import prose
from bubblefinder.report.sentences import plain
from bubblefinder.units import UNKNOWN, plural

SCHEMA: Final = "bubblefinder.trend/1"
_BAR: Final = 26


def text(trend: Trend, width: int | None = None) -> str:
    """Return one line a run with its value as a bar, and a line where the metric moved."""
    largest = max((abs(p.value) for p in trend.points), default=0) or 1.0
    shifts = {shift.at: shift for shift in trend.shifts}
    lines = [f"{title(trend)}: {plural(len(trend.points), 'run')}"]
    for number, point in enumerate(trend.points):
        if number in shifts:
            lines.append(f"  ····· {_moved(trend, shifts[number])}")
        lines.append(_line(trend, point, largest))
    return "\n".join(prose(line, width, " " * 7) for line in [*lines, *verdicts(trend)]) + "\n"


def html(trend: Trend) -> str:
    """Return a page with the runs as dots, the levels as lines, and a table of the same."""
    shown, unit = sheet(trend), trend.metric.unit
    edges = [0, *(shift.at for shift in trend.shifts), len(trend.points)]
    drawn = chart([point.value for point in trend.points], edges, zero=False)
    body = (
        environment()
        .get_template("trend.html.j2")
        .render(
            sheet=shown,
            drawn=drawn,
            ticks=[(y, format_limit(value, unit)) for y, value in drawn.ticks],
            runs=[(p.run.state, f"run {p.run.id}: {format_limit(p.value, unit)}") for p in trend.points],
        )
    )
    return page(shown.title, body)


def sheet(trend: Trend) -> Sheet:
    """Return since which run the metric has moved, and a table of the runs."""
    said = [*(_moved(trend, shift) for shift in trend.shifts), *verdicts(trend)]
    return Sheet(
        document="trend",
        title=f"{title(trend)} · bubblefinder trend",
        headline=f"{title(trend)}: {' '.join(said)}",
        verdict=title(trend),
        rest=" ".join(f"{line[:1].upper()}{line[1:]}".rstrip(".") + "." for line in said),
        level=_level(trend),
        basis=trend.metric.meaning,
        tables=(_runs(trend),),
    )


def records(trend: Trend) -> list[dict[str, object]]:
    """Return one record a run, oldest first."""
    return [
        record_of(one.run) | {"metric": trend.metric.id, "unit": trend.metric.unit, "value": one.value}
        for one in trend.points
    ]


def document(trend: Trend) -> dict[str, object]:
    """Return the metric, its runs and where it moved, for JSON."""
    return {
        "schema": SCHEMA,
        "metric": trend.metric.id,
        "unit": trend.metric.unit,
        "where": dict(trend.where),
        "runs": [{key: row[key] for key in ("run", "added_at", "commit", "state", "value")} for row in records(trend)],
        "moved": [
            {"run": trend.points[one.at].run.id, "before": one.before, "after": one.after, "changed": list(one.changed)}
            for one in trend.shifts
        ],
    }


def verdicts(trend: Trend) -> list[str]:
    """Return what else is to be said: that nothing moved, or that the newest run alone can't tell."""
    told = [] if trend.shifts else ["It has not moved beyond its noise."]
    if trend.left_out:
        runs = plural(trend.left_out, "run")
        told.append(f"{runs} of older definitions left out: `history add` their captures again to have them here.")
    newest = trend.points[-1].run
    settled = trend.shifts and trend.shifts[-1].at >= len(trend.points) - SHORTEST
    if newest.state == "alarm" and not settled:
        told.append(f"Run {newest.id} raised an alarm; a second run like it would tell a step from an outlier.")
    return told


def title(trend: Trend) -> str:
    """Return the metric, what of, and whose."""
    label = f", {plain(trend.label, 60)}" if trend.label else ""
    return f"{trend.metric.id}{place(dict(trend.where))}{label}"


def _level(trend: Trend) -> Level | None:
    """Return whether all is well; null after a step that is none for the better, which somebody may have accepted."""
    if trend.points[-1].run.state == "alarm":
        return "fail"
    return "ok" if not trend.shifts or _better(trend, trend.shifts[-1]) else None


def _better(trend: Trend, shift: Shift) -> bool | None:
    return {"lower": shift.after < shift.before, "higher": shift.after > shift.before}.get(trend.metric.better)


def _moved(trend: Trend, shift: Shift) -> str:
    unit, run, last = trend.metric.unit, trend.points[shift.at].run, trend.points[shift.at - 1].run
    word = {True: "better", False: "worse", None: "other"}[_better(trend, shift)]
    change = f" ({100 * (shift.after / shift.before - 1):+.1f} %)" if shift.before and unit != "ratio" else ""
    commits = f", commits {plain(last.commit, 40)} to {plain(run.commit, 40)}" if run.commit and last.commit else ""
    told = plain("; ".join(shift.changed), 300)
    changed = f"with it {told}" if told else "nothing recorded changed with it"
    levels = f"{format_limit(shift.before, unit)} to {format_limit(shift.after, unit)}{change}"
    return f"{word} since run {run.id} of {run.added_at[:10]}: {levels}{commits}; {changed}"


def _line(trend: Trend, point: Point, largest: float) -> str:
    run = point.run
    bar = "█" * round(_BAR * abs(point.value) / largest)
    words = (plain(run.commit, 12) or UNKNOWN, format_limit(point.value, trend.metric.unit))
    state = "" if run.state == "ok" else f"  {run.state}"
    return f"  {run.id:>5}  {run.added_at[:10]}  {words[0]:<12}  {words[1]:>9}  {bar}{state}"


def _runs(trend: Trend) -> Table:
    rows = [
        (
            f"{p.run.id} {plain(p.run.name, 80)}", p.run.added_at[:16], plain(p.run.commit, 40) or UNKNOWN,
            format_limit(p.value, trend.metric.unit), p.run.state,
        )
        for p in trend.points
    ]  # fmt: skip
    return Table("Runs", ("run", "added", "commit", "value", "state"), rows, left=("added", "commit", "state"))
