"""A benchmark held against a capture: whether step, TPOT and accept length fit together, and what misleads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.economics.speculation import CANDIDATES, SILENT
from bubblefinder.units import duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.economics.bench import Bench

AGREES: Final = 0.10
"""Step and TPOT x accept within a tenth agree: a capture is short, and contexts grow while a benchmark runs."""
_WARM_UP: Final = 5.0
"""A first token that takes so many times the median was compiled, captured or loaded for: warm-up inside."""
_SAME: Final = 0.05
"""Mean ITL so near to mean TPOT times accept length is the step: tokens arrive a step at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What of a capture a benchmark is held against: means over its decode steps, null where not known.

    Attributes:
        step_ns: step as captured.
        untraced_ns: step without the profiler.
        bubble_ns: idle of a step.
        drafts: whether the step has draft replays.
    """

    step_ns: float | None
    untraced_ns: float | None
    bubble_ns: float | None
    drafts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One run held against a capture.

    Attributes:
        bench: the run.
        step_ns: mean step by the run: TPOT times accept length.
        captured_ns: mean step of the capture, without the profiler where that is known; null without a step.
        off: how much longer the run's step is, as a ratio; null without a captured one.
        bubble_share_of_tpot: what a token waits for an idle GPU, over its TPOT; null where not measured.
        notes: traps, one sentence each.
    """

    bench: Bench
    step_ns: float
    captured_ns: float | None
    off: float | None
    bubble_share_of_tpot: float | None
    notes: tuple[str, ...]


def served(benches: Sequence[Bench], capture: Capture) -> tuple[Served, ...]:
    """Return each run of one request at a time, or the only one, held against the capture."""
    single = [bench for bench in benches if bench.concurrency in (None, 1)] or list(benches[:1])
    return tuple(_served(bench, capture) for bench in single)


def _served(bench: Bench, capture: Capture) -> Served:
    captured = capture.untraced_ns or capture.step_ns
    off = bench.step_ns / captured - 1.0 if captured else None
    idle = capture.bubble_ns / captured if capture.bubble_ns is not None and captured else None
    return Served(
        bench=bench,
        step_ns=bench.step_ns,
        captured_ns=captured,
        off=off,
        bubble_share_of_tpot=idle,
        notes=(*_disagreement(bench, capture, off), *traps(bench, drafts=capture.drafts)),
    )


def _disagreement(bench: Bench, capture: Capture, off: float | None) -> Iterator[str]:
    if off is None or abs(off) <= AGREES:
        return
    said = (
        f"the benchmark's step, TPOT times accept length, is {duration(bench.step_ns)}, the capture's "
        f"{duration(capture.untraced_ns or capture.step_ns)}: {share(abs(off))} {'longer' if off > 0 else 'shorter'}"
    )
    if capture.step_ns and abs(bench.step_ns / capture.step_ns - 1.0) <= AGREES:
        yield f"{said}. It is the traced step: the benchmark ran while the profiler did"
    else:
        yield f"{said}. They are of different loads, or the accept length is another one"


def traps(bench: Bench, *, drafts: bool) -> Iterator[str]:
    """Yield what in a run's figures misleads, a sentence each."""
    if bench.failed:
        yield f"{bench.failed} of {bench.completed + bench.failed} requests failed: the run stopped early"
    itl, tpot = bench.times_ns["itl"]["mean"], bench.tpot_ns
    accept = bench.accept_length or 1.0
    if itl and accept > 1 + SILENT and abs(itl / bench.step_ns - 1.0) <= _SAME:
        yield (
            f"its ITL of {duration(itl)} is the step, since tokens arrive a step at a time; "
            f"a token takes {duration(tpot)}"
        )
    if bench.slowest_ttft and bench.slowest_ttft > _WARM_UP:
        yield f"one first token took {bench.slowest_ttft:.0f} times the median: warm-up is inside the run"
    if drafts and bench.accept_length is not None and bench.accept_length <= 1 + SILENT:
        yield f"its accept length is {bench.accept_length:.2f} while drafts run. Candidates: {'; '.join(CANDIDATES)}"
    elif drafts and bench.accept_length is None:
        yield "the capture drafts, and the benchmark states no accept length: its step can't be told from its TPOT"
