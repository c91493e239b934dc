"""Whether captures can be compared at all, and what a reader should know before believing the difference."""

from __future__ import annotations

from math import log
from statistics import fmean
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.metrics import ranks
from bubblefinder.timeline.missing import missing_work
from bubblefinder.units import count, duration, numberless, plural, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bubblefinder.report.model import Report

_Facts = dict[str, tuple[str | None, ...]]
"""What one report says, by how it reads where another says otherwise; null where it doesn't say."""
INSIDE_MODES: Final = frozenset({"node", "graph", "mixed"})
FEW_STEPS: Final = 5
COLD: Final = 3.0
"""A first step this many times as long as the others was not warm; skew and cold caches make it 1.3 times as long."""
OTHER_STEPS: Final = 1.8
"""Steps that hold so many times the replays of the other side may be halves or pairs of them; a draft more is not."""
_VERSIONS: Final = (
    ("nsys_version", "Nsight Systems"),
    ("cupti_version", "CUPTI"),
    ("driver_version", "driver"),
    ("cuda_version", "CUDA"),
)


def refusals(base: Sequence[Report], head: Sequence[Report], *, inter_only: bool = False) -> list[str]:
    """Return why the two sides can't be compared, one sentence a reason; empty if they can."""
    reasons = (
        *_definitions(base, head),
        *_without_steps(base, head),
        *_modes(base, head, inter_only=inter_only),
        *_differing(base, head, lambda report: {"The GPUs differ": gpu_names(report)}),
    )
    return list(dict.fromkeys(reasons or _cut_otherwise(base, head)))


def warnings(base: Sequence[Report], head: Sequence[Report]) -> list[str]:
    """Return what differs around the two sides besides the program, one sentence each."""
    found = (
        *_few_steps(base, head),
        *_began_cold(base, head),
        *_unknown_gpus(base, head),
        *_eager(base, head),
        *_differing(base, head, _tools),
        *_roles(base, head),
        *_differing(base, head, _workload),
        *_requests(base, head),
    )
    return list(dict.fromkeys(found))


def benchmark_traps(base: Sequence[Report], head: Sequence[Report]) -> list[str]:
    """Return what misleads in the benchmark runs held against either side; it says nothing about the captures."""
    found = (
        f"The benchmark of {name}: {printable(note, 600)}."
        for name, side in (("base", base), ("head", head))
        for report in side
        for run in (report.economics.served if report.economics else ())
        for note in run.notes
    )
    return list(dict.fromkeys(found))


def gpu_names(report: Report) -> tuple[str | None, ...]:
    """Return the names of the GPUs with decode steps, a rank each."""
    names = {gpu.gpu: gpu.name for gpu in report.trace.gpus}
    return tuple(names.get(rank.gpu) for rank in ranks(report))


def node_counts(report: Report) -> dict[str, int]:
    """Return the nodes a replay has, by role, where the capture tells."""
    return {role.role: round(role.nodes) for role in report.steps.roles if role.nodes is not None}


def unmeasured(report: Report) -> tuple[str, str]:
    """Return why a report can't be judged, and what to do about it; empty where it can."""
    name = printable(report.trace.name)
    if missing := missing_work(report.trace.capture_mode, report.quality):
        return f"{name} can't be judged, since {missing.why}", f"{missing.hint.capitalize()}."
    return ("", "") if ranks(report) else (f"{name} has no decode steps", "See what `bubblefinder doctor` says of it.")


def _definitions(base: Sequence[Report], head: Sequence[Report]) -> Iterator[str]:
    known = {report.definitions for report in (*base, *head)}
    if len(known) > 1:
        versions = " and ".join(str(one) for one in sorted(known))
        yield f"The reports follow other definitions (versions {versions}): analyse all captures with one bubblefinder."


def _without_steps(base: Sequence[Report], head: Sequence[Report]) -> Iterator[str]:
    for report in (*base, *head):
        if not ranks(report):
            yield f"{printable(report.trace.name)} has no decode steps."


def _few_steps(base: Sequence[Report], head: Sequence[Report]) -> Iterator[str]:
    for report in (*base, *head):
        if report.steps.count < FEW_STEPS:
            yield f"{printable(report.trace.name)} holds only {plural(report.steps.count, 'decode step')}."


def _began_cold(base: Sequence[Report], head: Sequence[Report]) -> Iterator[str]:
    """Tell a first step that one side alone had to leave out for being far longer than all others."""
    cold = [[(report, *told) for report in side if (told := _first_step(report))] for side in (base, head)]
    for mine, other in ((cold[0], cold[1]), (cold[1], cold[0])):
        for report, first, usual in () if other else mine:
            yield (
                f"The first step of {printable(report.trace.name)} took {duration(first)}, others {duration(usual)}: "
                "it is left out. Warm up before the capture begins."
            )


def _first_step(report: Report) -> tuple[int, float] | None:
    """Return the length of a first step that is no decode step like the others but far longer, and theirs."""
    rank = next(iter(ranks(report)), None)
    usual = rank.per_step["duration"].p50 if rank else None
    if rank is None or not usual:
        return None
    mine = (row for row in report.steps.rows if (row.gpu, row.pid) == (rank.gpu, rank.pid))
    first = max((row.duration_ns for row in mine if row.excluded == "capture_start"), default=0)
    return (first, usual) if first > COLD * usual else None


def _modes(base: Sequence[Report], head: Sequence[Report], *, inter_only: bool) -> Iterator[str]:
    for report in (*base, *head):
        if missing_work(report.trace.capture_mode, report.quality):
            yield "; ".join(unmeasured(report))
    modes = {r.trace.capture_mode for r in (*base, *head)} & INSIDE_MODES
    if len(modes) > 1 and not inter_only:
        yield (
            f"The captures trace CUDA graphs differently ({' and '.join(sorted(modes))} mode): node tracing lengthens "
            "every step. Capture both sides alike, or compare only the idle time between replays with --inter-only."
        )


def _cut_otherwise(base: Sequence[Report], head: Sequence[Report]) -> list[str]:
    """Refuse steps that hold another number of replays and are longer or shorter by about as much: halves, or pairs.

    Where the replays of a step became fewer because graphs were joined, its length stays nearly as it was.
    """
    replays = [fmean(sum(role.replays_per_step for role in r.steps.roles) for r in side) for side in (base, head)]
    lengths = [fmean(ranks(r)[0].per_step["duration"].mean or 0.0 for r in side) for side in (base, head)]
    if not all((*replays, *lengths)):
        return []
    more, longer = log(replays[1] / replays[0]), log(lengths[1] / lengths[0])
    if abs(more) < log(OTHER_STEPS) or abs(longer - more) >= abs(longer):
        return []
    held = f"A step holds {count(replays[0])} replays in base and {count(replays[1])} in head"
    return [
        f"{held}, and its length differs alike: the steps were cut otherwise. Mark steps with NVTX and capture again."
    ]


def _unknown_gpus(base: Sequence[Report], head: Sequence[Report]) -> Iterator[str]:
    for name, side in (("base", base), ("head", head)):
        if not any(gpu for report in side for gpu in gpu_names(report)):
            yield f"The capture of {name} doesn't say which GPU it ran on."


def _eager(base: Sequence[Report], head: Sequence[Report]) -> Iterator[str]:
    modes = {r.trace.capture_mode for r in (*base, *head)}
    if "none" in modes and len(modes) > 1:
        yield "One side replays CUDA graphs and the other has none."


def _tools(report: Report) -> _Facts:
    """Return what a capture was made and corrected with, and of how many ranks it is."""
    versions: _Facts = {f"{name} differs": (getattr(report.trace, field),) for field, name in _VERSIONS}
    method, number = (report.overhead.method,), (str(len(ranks(report))),)
    return versions | {"The profiler's overhead was found differently": method, "The number of ranks differs": number}


def _roles(base: Sequence[Report], head: Sequence[Report]) -> Iterator[str]:
    before, after = base[0], head[0]
    mine, theirs = node_counts(before), node_counts(after)
    for role in sorted(mine.keys() & theirs.keys()):
        if mine[role] != theirs[role]:
            yield f"A {printable(role)} replay has {count(mine[role])} nodes against {count(theirs[role])}."
    parts, others = ({r.role for r in report.steps.roles} for report in (before, after))
    for role in sorted(parts ^ others):
        yield f"Only {'base' if role in parts else 'head'} has a {printable(role)} part in its steps."


def _workload(report: Report) -> _Facts:
    """Return what cut the steps, and what the user says of the run."""
    marks: _Facts = {"The steps were cut by other marks": (_mark(report),)}
    return marks | {f"{printable(key)} differs": (value,) for key, value in sorted(report.run.meta.items())}


def _mark(report: Report) -> str:
    """Return what cut the steps, without the numbers in a range's name: how many requests and tokens a step has."""
    steps = report.steps
    if steps.mark is None:
        return f"{steps.method} (no mark)"
    return numberless(steps.mark) if steps.method == "nvtx" else steps.mark


def _requests(base: Sequence[Report], head: Sequence[Report]) -> Iterator[str]:
    before, after = ({f"{told.p50:g}" for r in side if (told := r.steps.requests)} for side in (base, head))
    if before and after and before != after:
        yield f"The steps serve other numbers of requests: {_listed(before)} against {_listed(after)} in the median."


def _differing(base: Sequence[Report], head: Sequence[Report], facts_of: Callable[[Report], _Facts]) -> Iterator[str]:
    """Yield how the sides differ in what is known of both."""
    sides = [[facts_of(report) for report in side] for side in (base, head)]
    for said in dict.fromkeys(said for facts in sides[0] for said in facts):
        before, after = ({one for facts in side for one in facts.get(said, ()) if one is not None} for side in sides)
        if before and after and before != after:
            yield f"{said}: {_listed(before)} against {_listed(after)}."


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(printable(name) for name in names))
