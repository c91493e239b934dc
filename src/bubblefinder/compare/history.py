"""Runs over time: what was measured, which runs make up the present normal, and which raised an alarm."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, Literal

from bubblefinder.compare.baseline import TRACED, Baseline, shift
from bubblefinder.compare.comparable import gpu_names, node_counts
from bubblefinder.compare.delta.tracer import traced_as
from bubblefinder.compare.diff import GATE
from bubblefinder.compare.metrics import METRICS, measurable, measure, ranks
from bubblefinder.compare.noise import Spread, spread_of, waiting_of
from bubblefinder.compare.reach import reach_of
from bubblefinder.compare.store import compressed, expanded, packed
from bubblefinder.errors import CannotAnswerError, UsageError
from bubblefinder.report.json import decode, encode
from bubblefinder.report.model import DEFINITIONS, Report
from bubblefinder.units import UNKNOWN, duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlite_utils import Database

    from bubblefinder.compare.metrics import Key

State = Literal["ok", "alarm", "accepted", "failed", "unsure"]

COLUMNS: Final = ("run", "added_at", "label", "commit", "name", "state", "metric", "where", "unit", "value")
BASELINE_RUNS: Final = 20
COMPARED_RUNS: Final = 3
"""So many of them are taken apart beside a run that alarms: enough to measure their spread."""
_OUTSIDE: Final = "('alarm', 'failed', 'unsure')"
"""The states of runs that never feed the baseline, for SQL."""
AGAIN: Final = "numbers of two definitions mean different things, so add its capture again (bubblefinder history add)"
UNKNOWN_MODE: Final = "unknown"
_ALARMS: Final = {"step.duration.mean": "the mean step", GATE: "a step"}


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that could not be measured: what it was to be, and why not."""

    name: str
    reason: str
    label: str | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run as the history remembers it.

    `waiting` is the share of a typical step in which the GPU waited for the host, `reach` that by which the noise of
    its host alone may lengthen it; `facts` are what may explain a change besides the program. A `failed` run measured
    nothing, and of an `unsure` one a slower host or GPU accounts for what would be an alarm: `reason` says so.
    """

    id: int
    added_at: str
    label: str
    commit: str | None
    name: str
    state: State
    reason: str | None
    steps: int
    waiting: float
    reach: float
    facts: dict[str, str]


def add(
    database: Database, report: Report, *, reason: str = "", excuse: str = "", now: datetime | None = None
) -> PastRun:
    """Store a report and return it as a run; one that is stored already is returned as it was.

    A run raises an alarm if `reason` says so or if a step got longer than the baseline by more than the noise; with an
    `excuse`, such as a slower host, the latter only makes it unsure. Neither feeds the baseline until it is accepted.

    Raises:
        CannotAnswerError: the report has no decode steps, or lacks the work of its graphs.
    """
    if not measurable(report):
        raise CannotAnswerError(
            "a report without measured steps can't be stored", hint="`bubblefinder doctor` says why"
        )
    digest = digest_of(report)
    for row in database.table("runs").rows_where("digest = ?", [digest]):
        return _run(row)
    slower = _slower(database, report)
    alarm = "; ".join(text for text in (reason.rstrip("."), "" if excuse else slower) if text)
    unsure = excuse if slower and not alarm else ""
    row = _row(report) | {
        "digest": digest,
        "added_at": _at(now),
        "state": "alarm" if alarm else "unsure" if unsure else "ok",
        "reason": alarm or unsure or None,
        "report": compressed(encode(report)),
    }
    number = database.table("runs").insert(row).last_pk
    database.table("measures").insert_all(
        {"run": number, "metric": m.metric.id, "dimensions": packed(dict(m.where)), "value": m.value}
        for m in measure(report)
        if m.value is not None
    )
    return run(database, int(str(number)))


def add_failed(database: Database, report: Report | None, failure: Failure) -> PastRun:
    """Store that a run could not be measured, and why; it never feeds the baseline.

    The report is null where the capture couldn't be read.
    """
    known = (
        _row(report)
        if report
        else {"capture_mode": UNKNOWN_MODE, "definitions": DEFINITIONS, "steps": 0, "waiting": 0.0}
    )
    moment = _at(None)
    row = known | {
        "digest": hashlib.sha256(f"{moment} {failure}".encode()).hexdigest(),
        "added_at": moment,
        "label": failure.label or "",
        "commit_id": failure.commit,
        "name": failure.name,
        "state": "failed",
        "reason": failure.reason,
    }
    number = database.table("runs").insert(row, replace=True).last_pk
    return run(database, int(str(number)))


def _at(now: datetime | None) -> str:
    return (now or datetime.now(UTC)).isoformat(timespec="seconds")


def run(database: Database, number: int) -> PastRun:
    """Return one run.

    Raises:
        UsageError: there is none of that number.
    """
    for row in database.table("runs").rows_where("id = ?", [number]):
        return _run(row)
    raise UsageError(f"the history has no run {number}", hint="`bubblefinder history list` shows them")


def runs(database: Database, label: str | None = None) -> list[PastRun]:
    """Return the runs of a label, or all, oldest first."""
    rows = database.table("runs").rows_where(order_by="id")
    return [_run(row) for row in rows if label is None or row["label"] == label]


def accept(database: Database, number: int) -> PastRun:
    """Take a run as the new normal: the baseline begins with it."""
    run(database, number)
    database.table("runs").update(number, {"state": "accepted", "reason": None})
    return run(database, number)


def prune(database: Database, keep: int) -> int:
    """Delete all but the newest `keep` runs of every label; return how many went."""
    doomed = """
        SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY label ORDER BY id DESC) AS age FROM runs)
        WHERE age > ?"""
    numbers = [row[0] for row in database.execute(doomed, [keep]).fetchall()]
    for number in numbers:
        database.table("measures").delete_where("run = ?", [number])
        database.table("runs").delete(number)
    return len(numbers)


def values(database: Database, number: int) -> dict[Key, float]:
    """Return what a run measured."""
    rows = database.table("measures").rows_where("run = ?", [number], order_by="rowid")
    return {(row["metric"], tuple(json.loads(row["dimensions"]).items())): row["value"] for row in rows}


def record_of(run: PastRun) -> dict[str, Any]:
    """Return what a record says of its run, before the value."""
    return {"run": run.id} | {name: getattr(run, name) for name in COLUMNS[1:6]}


def records(database: Database, label: str | None) -> Iterator[dict[str, Any]]:
    """Yield a record of `COLUMNS` for every value of every run of a label, or of all, for other tools."""
    for one in runs(database, label):
        for (metric, where), value in values(database, one.id).items():
            unit = METRICS[metric].unit if metric in METRICS else None
            of = ";".join(f"{key}={part}" for key, part in where)
            yield record_of(one) | {"metric": metric, "where": of, "unit": unit, "value": value}


def baseline(database: Database, report: Report) -> Baseline:
    """Return the newest comparable runs since the last accepted one, without alarms and without the report itself.

    Comparable: the same label, capture mode, GPUs, number of ranks, model and definitions. Where there is none, the
    baseline says what sets the newest run of the label apart.
    """
    rows = _normal(database, report)
    reports = _reports(rows) if report.trace.capture_mode != "graph" else {}  # only node mode traces nodes
    more = dict(zip(reports, traced_as(report, list(reports.values())), strict=True))
    table: dict[Key, list[float]] = {}
    for row in rows:
        for key, value in values(database, row["id"]).items():
            table.setdefault(key, []).append(value + more.get(row["id"], {}).get(key, 0.0))
    lengths = table.get((GATE, (("rank", 0),)), [])
    return Baseline(
        values={key: tuple(known) for key, known in table.items()},
        waiting=max((row["waiting"] for row in rows), default=0.0),
        step_ns=fmean(lengths) if lengths else 0.0,
        captures=len(rows),
        origin=f"{plural(len(rows), 'run')} of the history" + (TRACED if any(more.values()) else ""),
        unlike="" if rows else _unlike(database, report),
        reach=max((row["reach"] for row in rows), default=0.0),
    )


def normal_reports(database: Database, report: Report) -> list[Report]:
    """Return the reports of the newest runs of the baseline, oldest first; runs of older files kept none."""
    return list(_reports(_normal(database, report)).values())[-COMPARED_RUNS:]


def _reports(rows: Sequence[Mapping[str, Any]]) -> dict[int, Report]:
    """Return the reports of those runs that kept theirs, by the number of the run."""
    return {row["id"]: decode(expanded(row["report"])) for row in rows if row["report"]}


def spreads(database: Database, report: Report) -> Mapping[Key, Spread]:
    """Return how far the runs of the baseline lie apart, by metric."""
    return {key: spread_of(known) for key, known in baseline(database, report).values.items()}


def digest_of(report: Report) -> str:
    """Return what tells a report from every other."""
    return hashlib.sha256(encode(report)).hexdigest()


def _normal(database: Database, report: Report) -> list[dict[str, Any]]:
    mine = _row(report)
    clause = " AND ".join(f"{name} IS :{name}" for name in _SAME) + " AND digest != :digest"
    clause += f" AND state NOT IN {_OUTSIDE} AND (json_extract(meta, '$.model') IS :model OR :model IS NULL)"
    parameters = {name: mine[name] for name in _SAME} | {
        "digest": digest_of(report),
        "model": report.run.meta.get(_MODEL),
    }
    rows = list(database.table("runs").rows_where(clause, parameters, order_by="id desc", limit=BASELINE_RUNS))
    epoch = next((number for number, row in enumerate(rows) if row["state"] == "accepted"), len(rows))
    return rows[: epoch + 1][::-1]


def _unlike(database: Database, report: Report) -> str:
    """Return in words what sets the newest run of the report's label apart from it; empty without such a run."""
    mine = _row(report)
    found = database.table("runs").rows_where(
        f"label = ? AND digest != ? AND state NOT IN {_OUTSIDE}",
        [mine["label"], digest_of(report)],
        order_by="id desc",
        limit=1,
    )
    last = next(iter(found), None)
    if last is None:
        return ""
    before, after = _facts(last), _facts(mine)
    told = [
        f"{name} {before.get(name, UNKNOWN)} there and {after.get(name, UNKNOWN)} here"
        for name in (*_KIND, _MODEL)
        if before.get(name) != after.get(name)
    ]
    again = f"; {AGAIN}" if last["definitions"] != mine["definitions"] else ""
    return f"run {last['id']} of this label is of another kind: {', '.join(told)}{again}" if told else ""


def _slower(database: Database, report: Report) -> str:
    """Return the alarm in words if a step of any rank is longer than the baseline by more than the noise.

    Its mean counts as well as its median: stalls in few steps leave the median as it was.
    """
    normal = baseline(database, report)
    for one in measure(report):
        if one.metric.id not in _ALARMS:
            continue
        moved = shift(normal, report, one)
        if moved and moved.delta > moved.line:
            step = _ALARMS[one.metric.id]
            return f"{step} takes {duration(one.value)} against {duration(moved.mean)} in {normal.origin}"
    return ""


def _row(report: Report) -> dict[str, Any]:
    trace = report.trace
    return {
        "label": report.run.label or "",
        "commit_id": report.run.commit,
        "name": trace.name,
        "capture_mode": trace.capture_mode,
        "gpus": packed(gpu_names(report)),
        "ranks": len(ranks(report)),
        "steps": report.steps.count,
        "waiting": waiting_of(report),
        "reach": reach_of(report),
        "nsys_version": trace.nsys_version,
        "cupti_version": trace.cupti_version,
        "driver_version": trace.driver_version,
        "cuda_version": trace.cuda_version,
        "nodes": packed(node_counts(report)),
        "meta": packed(report.run.meta),
        "definitions": report.definitions,
    }


_FACTS: Final = {
    "nsys_version": "Nsight Systems",
    "cupti_version": "CUPTI",
    "driver_version": "driver",
    "cuda_version": "CUDA",
    "capture_mode": "capture mode",
    "ranks": "ranks",
    "definitions": "definitions",
}
_MODEL: Final = "model"
"""The key of `--meta` that names the model: runs of two models are never compared."""
_SAME: Final = ("label", "capture_mode", "gpus", "ranks", "definitions")
_KIND: Final = ("capture mode", "GPUs", "ranks", "definitions")


def _facts(row: Mapping[str, Any]) -> dict[str, str]:
    facts = {name: str(row[column]) for column, name in _FACTS.items() if row[column] is not None}
    facts |= {"GPUs": ", ".join(sorted({str(name or UNKNOWN) for name in json.loads(row["gpus"] or "[]")}))}
    facts |= {f"{role} nodes": str(number) for role, number in json.loads(row["nodes"] or "{}").items()}
    facts |= json.loads(row["meta"] or "{}")
    return facts


def _run(row: Mapping[str, Any]) -> PastRun:
    return PastRun(
        id=row["id"],
        added_at=row["added_at"],
        label=row["label"],
        commit=row["commit_id"],
        name=row["name"],
        state=row["state"],
        reason=row["reason"],
        steps=row["steps"],
        waiting=row["waiting"],
        reach=row["reach"],
        facts=_facts(row),
    )
