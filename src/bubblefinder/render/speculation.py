"""Whether speculation pays, as people and programs read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.economics.speculation import CANDIDATES, Sweep, Verdict, as_document
from bubblefinder.render.kit.sheet import Sheet, Table
from bubblefinder.units import UNKNOWN, share

if TYPE_CHECKING:
    from collections.abc import Iterator


_SURE: Final = {None: "one run a depth", True: "yes", False: "no"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """What was measured, and how it stands against plain decoding where that is known."""

    sweep: Sweep
    against: Verdict | None = None


def sheet(found: Speculation) -> Sheet:
    """Return the best depth, why the next one doesn't pay, and the speed-up with what is unexplained of it."""
    return Sheet(
        document="speculation",
        title="bubblefinder speculation",
        headline=" ".join(_headline(found)),
        verdict=next(iter(_headline(found))),
        basis="Step = mean TPOT x mean accept length. Peaks over a fixed second wobble by about 5 %: compare means. "
        "1/TPOT is no request's throughput: that contains its first token's time and its waiting.",
        warnings=tuple(_warnings(found)),
        tables=tuple(table for table in (_depths(found.sweep), _deeper(found.sweep)) if table.rows),
    )


def records(found: Speculation) -> list[dict[str, object]]:
    """Return one record a run."""
    return [
        {
            "draft_steps": point.steps,
            "draft_tokens": point.tokens,
            "accept_length": point.accept,
            "tpot_ms": point.tpot_ms,
            "step_ms": point.step_ms,
        }
        for point in found.sweep.points
    ]


def document(found: Speculation) -> dict[str, object]:
    """Return the runs, the break-even line, the best depth and the speed-up for JSON."""
    return as_document(found.sweep, found.against)


def _headline(found: Speculation) -> Iterator[str]:
    best = found.sweep.best
    if best is None:
        yield "No run was given."
    elif len(found.sweep.depths) == 1:
        yield f"With {best.name} a step takes {best.step_ms:.2f} ms and commits {best.accept:.2f} tokens."
    else:
        yield f"Draft depth {best.name} is the fastest here: {best.tpot_ms:.2f} ms a token."
    against = found.against
    if against is None:
        return
    if against.predicted is not None:
        yield (
            f"A round costs {against.cost:.2f} plain steps and commits {against.accept:.2f} tokens: "
            f"{against.predicted:.2f} times as fast."
        )
    if against.measured is not None:
        yield f"Measured: {against.measured:.2f} times."
    if against.unexplained is not None:
        yield f"The difference of {against.unexplained:+.2f} is unexplained."


def _warnings(found: Speculation) -> Iterator[str]:
    fallen = [point for point in found.sweep.points if point.fell_back]
    for point in fallen:
        yield (
            f"{point.steps}/{point.tokens}: the accept length is {point.accept:.2f}, so no draft token is taken while "
            f"every round still pays for them. Candidates: {'; '.join(CANDIDATES)}."
        )
    if found.against and found.against.fallback_ms is not None:
        yield (
            "if drafts were never taken and nothing said so, a token would take about "
            f"{found.against.fallback_ms:.0f} ms: watch the accept length"
        )


def _depths(sweep: Sweep) -> Table:
    rows = [
        (
            depth.name,
            f"{depth.accept:.2f}",
            f"{depth.tpot_ms:.2f}",
            f"{depth.step_ms:.2f}",
            str(depth.runs),
            UNKNOWN if depth.spread_ms is None else f"{depth.spread_ms:.2f}",
        )
        for depth in sweep.depths
    ]
    return Table(
        title="Depths (draft steps/positions verified)",
        header=("depth", "accept", "TPOT ms", "step ms", "runs", "spread ms"),
        rows=rows,
    )


def _deeper(sweep: Sweep) -> Table:
    rows = [
        (
            f"{one.shallow.name} to {one.deep.name}",
            share(one.cost),
            f"{one.break_even:.2f}",
            f"{one.deep.accept:.2f}",
            "pays" if one.pays else "loses",
            _SURE[one.sure],
        )
        for one in sweep.deeper
    ]
    return Table(
        title="Does drafting deeper pay?",
        header=("from", "step longer", "needs accept", "has", "so it", "beyond the runs' spread"),
        rows=rows,
        note="It pays where the accept length rises by more than the step does.",
        left=("so it", "beyond the runs' spread"),
    )
