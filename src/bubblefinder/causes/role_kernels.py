"""What the operations inside a role look like: how short, how close to each other, which kernels follow each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from bubblefinder.causes.decode import RankSteps, p50
from bubblefinder.causes.tandems import SpanKernels, find_tandems
from bubblefinder.intervals import begin_and_end
from bubblefinder.lookup import NOWHERE, comparable, places, previous
from bubblefinder.overhead.calibration import likely_costs
from bubblefinder.timeline.model import CaptureMode
from bubblefinder.trace.model import KERNEL
from bubblefinder.units import duration, kernel_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.intervals import Ints
    from bubblefinder.timeline.model import Timeline

SMALL_NS: Final = 6_000
LONG_SHARE: Final = 0.02
_MOST_RUNS: Final = 5
_MOST_NAMED: Final = 4
_MOST_NAMES: Final = 8


def inside_facts(
    timeline: Timeline, lane: RankSteps, operations: pl.DataFrame, spans: int, per_step: float
) -> dict[str, Any]:
    """Return the fields of `RoleFacts` on the inside of a role.

    Args:
        timeline: the timeline.
        lane: whose role.
        operations: of some of its replays or phases, in order: span, kind, start_ns, end_ns, stream, name.
        spans: how many these are.
        per_step: how many of them a step has.
    """
    chosen = operations["kind"].to_numpy() == KERNEL
    if not chosen.any():
        return {}
    starts, ends = begin_and_end(operations)
    span, stream = operations["span"].to_numpy(), comparable(operations["stream"])
    before = previous(span, stream)
    gap = starts - ends[before]
    follows = chosen & (before != NOWHERE) & chosen[before]
    name, names = _short_names(timeline, operations["name"])
    found = SpanKernels(span[chosen], stream[chosen], starts[chosen], ends[chosen], name[chosen], names, spans)
    lengths = found.ends - found.starts
    kernels = operations["name"].filter(pl.Series(chosen))
    return {
        "gap_p50_ns": p50(np.maximum(gap[before != NOWHERE], 0)),
        "kernel_p50_ns": p50(lengths),
        "small_share": float(np.mean(lengths < SMALL_NS)),
        "pdl_overlap_share": float(np.mean(gap[follows] < 0)) if follows.any() else None,
        **_tandems(timeline, lane, found, per_step),
        **_early_launches(gap[follows], name[before[follows]], name[follows], names, spans),
        "small_runs": _small_runs(found),
        "long_kernels": _long_kernels(timeline, kernels, _added(operations)[chosen]),
    }


def _short_names(timeline: Timeline, names: pl.Series) -> tuple[Ints, list[str]]:
    """Return the position of the name of each operation among the different names, as people read them."""
    known, place = np.unique(places(names), return_inverse=True)
    short = [kernel_name(timeline.trace.names.get(name, "?")) for name in known.tolist()]
    position = {text: number for number, text in enumerate(dict.fromkeys(short))}
    return np.array([position[text] for text in short])[place], list(position)


def _tandems(timeline: Timeline, lane: RankSteps, kernels: SpanKernels, per_step: float) -> dict[str, Any]:
    """Return the small kernels that follow each other often, and what fusing them gives a step at most."""
    costs = likely_costs(timeline, lane.gpu) if timeline.mode in (CaptureMode.NODE, CaptureMode.MIXED) else None
    found = find_tandems(kernels, SMALL_NS, costs.kernel_node.value if costs else 0.0)
    saved = sum(tandem.saved_ns for tandem in found) * per_step
    return {
        "tandems": tuple(
            f"{one.first}, {one.second} x {one.count:.4g}: {duration(one.saved_ns * per_step)}" for one in found
        ),
        "tandem_ns": saved if found else None,
        "tandem_share": saved / lane.step_p50_ns if found and lane.step_p50_ns else None,
    }


def _early_launches(gap: Ints, first: Ints, name: Ints, names: list[str], spans: int) -> dict[str, tuple[str, ...]]:
    """Return which kernels start before their predecessor's end, and which break the chain, by name."""
    early = gap < 0
    if not early.any():
        return {}
    pair, place = np.unique(first[early] * len(names) + name[early], return_inverse=True)
    pairs = [f"{names[one // len(names)]} and {names[one % len(names)]}" for one in pair.tolist()]
    most = _heaviest(place, np.ones(len(place), np.int64), pairs, _MOST_NAMED)
    breaks = _heaviest(name[~early], gap[~early], names, _MOST_NAMED)
    return {
        "pdl_pairs": tuple(f"{text} x {count / spans:.4g}" for text, count in most),
        "pdl_breaks": tuple(f"{text} x {count / spans:.4g}" for text, count in breaks),
    }


def _heaviest(kind: Ints, weight: Ints, names: Sequence[str], most: int) -> list[tuple[str, int]]:
    """Return the names that most weight falls on, and how often each occurs."""
    count, total = np.bincount(kind, minlength=len(names)), np.bincount(kind, weight, minlength=len(names))
    order = sorted(np.flatnonzero(count).tolist(), key=lambda one: (-total[one], names[one]))
    return [(names[one], int(count[one])) for one in order[:most]]


def _small_runs(kernels: SpanKernels) -> tuple[str, ...]:
    """Return the kernels shorter than 6 us beside another such, by name and number a span, costliest first."""
    lengths = kernels.ends - kernels.starts
    small, beside = lengths < SMALL_NS, np.zeros(len(lengths), np.bool_)
    before = previous(kernels.span)
    pairs = np.flatnonzero(small & (before != NOWHERE) & small[before])
    beside[pairs] = beside[before[pairs]] = True
    runs = _heaviest(kernels.name[beside], lengths[beside], kernels.names, _MOST_RUNS)
    return tuple(f"{name} x {max(round(count / kernels.spans), 1)}" for name, count in runs)


def _added(operations: pl.DataFrame) -> Ints:
    """Return the busy time that each operation adds to its span: launched early it runs beside another and waits."""
    reach = pl.col("end_ns").cum_max().shift(1).over("span")
    added = (pl.col("end_ns") - pl.max_horizontal("start_ns", reach)).clip(0)
    return operations.select_seq(added).to_series().to_numpy()


def _long_kernels(timeline: Timeline, names: pl.Series, added: Ints) -> tuple[str, ...]:
    """Return the names of the kernels that take at least 2 % of the busy time of kernels, costliest first."""
    known, place = np.unique(places(names), return_inverse=True)
    total = np.bincount(place, added)
    long = [(-took, name) for took, name in zip(total.tolist(), known.tolist(), strict=True)]
    long = sorted(one for one in long if -one[0] >= LONG_SHARE * total.sum())
    return tuple(timeline.trace.names.get(name, "?") for _, name in long[:_MOST_NAMES])
