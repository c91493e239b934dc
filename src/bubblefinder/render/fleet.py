"""Captures side by side, as people and programs read them."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bubblefinder.fleet.judge import drifts, outliers, stragglers, worst
from bubblefinder.fleet.model import Failure, Fleet, Row
from bubblefinder.render.kit.sheet import Sheet, Table
from bubblefinder.report.sentences import plain
from bubblefinder.units import UNKNOWN, count, duration, plural, share

if TYPE_CHECKING:
    from bubblefinder.fleet.analyse import Analysed

SCHEMA: Final = "bubblefinder.fleet/1"
_COLUMNS: Final = tuple(one.name for one in fields(Row))
_WORDS: Final = ("first to fix", "GPU", "mode", "reason", "drifts")


def sheet(fleet: Fleet) -> Sheet:
    """Return what stands out, then every rank, then what could not be read."""
    tables = (_worst(fleet), _stragglers(fleet), _outliers(fleet), _drifts(fleet), _all(fleet), _failures(fleet))
    return Sheet(
        document="fleet",
        title="bubblefinder batch",
        headline=_headline(fleet),
        verdict=_headline(fleet),
        level=None if fleet.rows else "unknown",
        warnings=(f"{plural(len(fleet.failures), 'capture')} could not be analysed",) if fleet.failures else (),
        tables=tuple(table for table in tables if table.rows),
    )


def records(fleet: Fleet) -> list[dict[str, object]]:
    """Return one record a rank."""
    return [asdict(row) for row in fleet.rows]


def document(fleet: Fleet) -> dict[str, object]:
    """Return every rank and failure for JSON; `docs/batch.md` lists the names."""
    return {"schema": SCHEMA, "rows": fleet.rows, "failures": fleet.failures}


def parquet(fleet: Fleet) -> bytes:
    """Return one row a rank as a Parquet file."""
    import io

    import polars as pl

    buffer = io.BytesIO()
    pl.DataFrame(list(fleet.rows), schema=_COLUMNS).write_parquet(buffer)
    return buffer.getvalue()


def line(done: Analysed) -> str:
    """Return one line on a capture that is done."""
    if done.failure:
        return f"{plain(done.path, 200)}: not analysed: {plain(_reason(done.failure), 200)}"
    ranks = [row for row in done.rows if row.steps]
    if not ranks:
        unseen = any(row.mode == "unseen" for row in done.rows)
        why = "the GPU work of its graphs is missing, so no bubble can be told" if unseen else "no decode steps"
        return f"{plain(done.path, 200)}: {why}"
    most = max(ranks, key=lambda row: row.inter_ns or 0.0)
    ranked = f" on {plural(len(ranks), 'rank')}" if len(ranks) > 1 else ""
    first = f"; first to fix: {plain(ranks[0].first, 100)}" if ranks[0].first else ""
    steps = f"{plural(most.steps, 'step')}{ranked} of {duration(most.step_ns)}"
    return f"{plain(done.path, 200)}: {steps}, {_idle(most)}{first}"


def _headline(fleet: Fleet) -> str:
    ranks = [row for row in fleet.rows if row.steps]
    captures = len({row.path for row in fleet.rows})
    if not ranks:
        return f"{plural(captures, 'capture')}, none with decode steps."
    most = (worst(fleet, 1) or ranks)[0]
    said = f"{plural(captures, 'capture')}, {plural(len(ranks), 'rank')}. Most idle: {_named(most)}, {_idle(most)}"
    late = stragglers(fleet)
    return f"{said}. {plural(len(late), 'rank')} held others up." if late else f"{said}."


def _idle(row: Row) -> str:
    if row.bubble_ns is not None and row.step_ns:
        return f"{duration(row.bubble_ns)} ({share(row.bubble_ns / row.step_ns)}) of a step idle"
    if row.inter_ns is not None and row.step_ns:
        return f"at least {duration(row.inter_ns)} ({share(row.inter_ns / row.step_ns)}) of a step idle"
    return "idle time unknown"


def _named(row: Row) -> str:
    return plain(row.capture, 80) + (f" GPU {row.gpu}" if row.gpu is not None else "")


def _worst(fleet: Fleet) -> Table:
    rows = [
        (
            _named(row),
            duration(row.step_ns),
            duration(row.bubble_ns),
            duration(row.inter_ns),
            plain(row.first, 80) or UNKNOWN,
        )
        for row in worst(fleet)
    ]
    return Table("Ranks that idle most", ("rank", "step", "idle", "outside graphs", "first to fix"), rows, left=_WORDS)


def _stragglers(fleet: Fleet) -> Table:
    rows = [(_named(one.row), duration(one.row.step_ns), duration(one.late_ns)) for one in stragglers(fleet)]
    return Table(
        "Stragglers",
        ("rank", "step", "late"),
        rows,
        note="late: idle outside graphs a step beyond the run's median rank, while others wait in collectives.",
        left=_WORDS,
    )


def _outliers(fleet: Fleet) -> Table:
    rows = [(_named(one.row), duration(one.row.step_ns), duration(one.median_ns)) for one in outliers(fleet)]
    return Table("Captures unlike the rest", ("rank", "step", "median"), rows, left=_WORDS)


def _drifts(fleet: Fleet) -> Table:
    rows = [
        (
            plain(one.gpu_name, 40) or UNKNOWN,
            one.mode,
            count(one.captures),
            duration(one.early_ns),
            duration(one.late_ns),
            duration(one.spread_ns),
            "yes" if one.real else "within the spread",
        )
        for one in drifts(fleet)
    ]
    header = ("GPU", "mode", "ranks", "first third", "last third", "spread", "drifts")
    return Table("Drift of the step", header, rows, left=_WORDS)


def _all(fleet: Fleet) -> Table:
    rows = [
        (
            plain(row.path, 160),
            UNKNOWN if row.gpu is None else str(row.gpu),
            row.mode,
            count(row.steps),
            duration(row.step_ns),
            duration(row.busy_ns),
            duration(row.bubble_ns),
            duration(row.inter_ns),
        )
        for row in fleet.rows
    ]
    header = ("capture", "GPU", "mode", "steps", "step", "busy", "idle", "outside graphs")
    return Table("Every rank", header, rows, left=_WORDS)


def _reason(failure: Failure) -> str:
    """Return why a capture was not analysed, as it is said where the capture is named already."""
    name = Path(failure.path).name
    return f"it{failure.reason.removeprefix(name)}" if failure.reason.startswith(f"{name} ") else failure.reason


def _failures(fleet: Fleet) -> Table:
    rows = [(plain(one.path, 160), plain(_reason(one), 300)) for one in fleet.failures]
    return Table("Not analysed", ("capture", "reason"), rows, left=_WORDS)
