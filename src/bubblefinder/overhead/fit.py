"""From the measurements of the calibration workload to costs with their spread.

Every GPU cost is a difference between the inside of the profiler range and the same chain before and after it in the
same process, since kernels run a little differently in each process. What a launch call takes untraced comes from
processes that no profiler was attached to; its upper end from attached ones outside the range. Lower and upper ends are
the extremes over chains and runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bubblefinder.errors import UsageError
from bubblefinder.overhead.model import FUNCTION_RANGE, Calibration, Cost, Costs, MeasuredRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

CALIBRATION_SCHEMA: Final = "bubblefinder.calibration/1"
MEASUREMENTS_SCHEMA: Final = "bubblefinder.measurements/1"
_KERNELS: Final = {"kernel", "wide", "stamped"}
_ENOUGH: Final = 9
_SMALL_CHAIN, _LARGE_CHAIN = 60, 200
_CALLS: Final = {
    "kernel_call": ("cuLaunchKernel",),
    "copy_call": ("cuMemsetD32Async", "cuMemcpyDtoDAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"),
    "other_call": ("cuEventRecord", "cuEventQuery", "cuStreamQuery", "cuStreamSynchronize"),
}
_PLAIN_CHAIN: Final = "nodes_200"
_BRANCHES: Final = "branches_"
_MEMSETS_BY_KERNEL: Final = ("memset_16384", "memset_65536")

Measurements = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Measurements by how they were captured: not at all, in graph mode, in node mode."""

    untraced: Sequence[Measurements]
    graph: Sequence[Measurements]
    node: Sequence[Measurements]


def fit(runs: Runs, *, driver: str, cupti: str, nsys: str | None) -> Calibration:
    """Return the costs that the runs show.

    Args:
        runs: at least one run of each kind, all on one kind of GPU.
        driver: version of the driver, as a capture names it.
        cupti: version of the collector's CUPTI.
        nsys: version of Nsight Systems.

    Raises:
        UsageError: the measurements are of another schema, incomplete, or of several kinds of GPU.
    """
    _check(runs)
    try:
        node, graph, rows = _node_costs(runs), _graph_costs(runs), measured_rows(runs)
    except (KeyError, IndexError, ValueError) as error:
        raise UsageError(
            "the calibration measurements are incomplete", hint="run `bubblefinder calibrate` again"
        ) from error
    gpu = str(runs.node[0]["gpu"]["name"])
    return Calibration(
        schema=CALIBRATION_SCHEMA, gpu=gpu, driver=driver, cupti=cupti, nsys=nsys, node=node, graph=graph, measured=rows
    )


def _check(runs: Runs) -> None:
    everything = [*runs.untraced, *runs.graph, *runs.node]
    if not (runs.untraced and runs.graph and runs.node) or any(
        run.get("schema") != MEASUREMENTS_SCHEMA for run in everything
    ):
        raise UsageError("these are no calibration measurements", hint="run `bubblefinder calibrate` again")
    if len({run["gpu"]["name"] for run in everything}) > 1:
        raise UsageError("the calibration ran on several kinds of GPU", hint="run it on one machine")


def _node_costs(runs: Runs) -> Costs:
    kernel = _cost(_per_operation(runs.node, _is_kernels))
    return Costs(
        function_range=FUNCTION_RANGE,
        kernel_node=kernel,
        branch_node=_cost(_per_operation(runs.node, lambda name, _: name.startswith(_BRANCHES))),
        dependent_node=_cost(_per_operation(runs.node, lambda _, counts: "dependent" in counts))
        if _has_dependent(runs)
        else kernel,
        memset_node=_cost(_beyond_kernels(runs.node, "memset")),
        copy_node=_cost(_beyond_kernels(runs.node, "copy")),
        replay=_replay_cost(runs.untraced, runs.node),
        eager_operation=_cost(_eager(runs.node)),
        gap_share=_gap_share(runs.node),
        **_untraced_launches(runs),
        **_call_costs(runs.node),
    )


def _graph_costs(runs: Runs) -> Costs:
    return Costs(
        function_range=FUNCTION_RANGE,
        replay=_replay_cost(runs.untraced, runs.graph),
        eager_operation=_cost(_eager(runs.graph)),
        **_call_costs(runs.graph),
    )


def _cost(values: Iterable[float]) -> Cost:
    """Return the median with the extremes; a cost measured below zero counts as none."""
    known = np.maximum(np.array(list(values), dtype=float), 0.0)
    return Cost(float(np.median(known)), float(known.min()), float(known.max()))


def late(values: Sequence[float]) -> float:
    """Return the median of the later half: the first plays after a change warm up."""
    return float(np.median(values[len(values) // 2 :]))


def _span(run: Measurements, phase: str, recipe: str, *, section: str = "graphs") -> float:
    played = run["phases"][phase][section][recipe]
    return late((played["queued"] if section == "graphs" else played)["span_ns"])


def added(run: Measurements, recipe: str, *, section: str = "graphs") -> float:
    """Return what the capture added to one play of a chain, in ns."""
    outside = (_span(run, "before", recipe, section=section) + _span(run, "after", recipe, section=section)) / 2
    return _span(run, "inside", recipe, section=section) - outside


def _graphs(run: Measurements) -> Iterable[tuple[str, Mapping[str, int]]]:
    return ((name, run["recipes"][name]) for name in run["phases"]["inside"]["graphs"])


def _names(runs: Iterable[Measurements]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name, _ in _graphs(run)))


def _is_kernels(name: str, counts: Mapping[str, int]) -> bool:
    return set(counts) <= _KERNELS and not name.startswith(_BRANCHES)


def _has_dependent(runs: Runs) -> bool:
    return any("dependent" in counts for _, counts in _graphs(runs.node[0]))


def _per_operation(node_runs: Sequence[Measurements], chosen: Callable[[str, Mapping[str, int]], bool]) -> list[float]:
    """Return the added time an operation; with ticks at both ends a chain of n has n + 1 places for it to sit."""
    return [
        added(run, name) / (sum(counts.values()) + 1)
        for run in node_runs
        for name, counts in _graphs(run)
        if chosen(name, counts)
    ]


def _beyond_kernels(node_runs: Sequence[Measurements], kind: str) -> list[float]:
    """Return what one operation of `kind` adds, beyond the same chain without any."""
    return [
        (added(run, name) - added(run, _PLAIN_CHAIN)) / counts[kind]
        for run in node_runs
        for name, counts in _graphs(run)
        if counts.get(kind, 0) > _ENOUGH and counts.get("kernel") == run["recipes"][_PLAIN_CHAIN]["kernel"]
        if name not in _MEMSETS_BY_KERNEL
    ]


def _replay_cost(untraced: Sequence[Measurements], traced: Sequence[Measurements]) -> Cost:
    def between(run: Measurements, name: str) -> float:
        return late(run["phases"]["inside"]["graphs"][name]["queued"]["between_ns"])

    usual = {
        name: np.median([between(run, name) for run in untraced if name in run["recipes"]]) for name in _names(untraced)
    }
    return _cost(between(run, name) - usual[name] for run in traced for name, _ in _graphs(run) if name in usual)


def _eager(traced: Sequence[Measurements]) -> list[float]:
    return [
        added(run, name, section="eager") / (sum(counts.values()) + 1)
        for run in traced
        for name in run["phases"]["inside"]["eager"]
        if set(counts := run["recipes"][name]) <= _KERNELS
    ]


def _gap_share(node_runs: Sequence[Measurements]) -> Cost:
    """Return the part of the added time between kernels, by the stamps that the kernels took themselves."""
    shares = []
    for run in node_runs:
        for name in run["phases"]["inside"]["stamped"]:
            between, inside = (_stamped_change(run, name, part) for part in ("between_ns", "inside_ns"))
            if between + inside > 0:
                shares.append(float(np.clip(between / (between + inside), 0, 1)))
    return _cost(shares) if shares else Costs().gap_share


def _stamped_change(run: Measurements, name: str, part: str) -> float:
    phases = {
        phase: float(np.mean(run["phases"][phase]["stamped"][name][part])) for phase in ("before", "inside", "after")
    }
    return phases["inside"] - (phases["before"] + phases["after"]) / 2


def _untraced_launches(runs: Runs) -> dict[str, Cost]:
    calls = [
        (sum(counts.values()), _idle(run, "inside", name, "call_ns"))
        for run in runs.untraced
        for name, counts in _graphs(run)
    ]
    attached = [
        _idle(run, "before", name, "call_ns") / sum(counts.values())
        for run in (*runs.graph, *runs.node)
        for name, counts in _graphs(run)
        if sum(counts.values()) >= _LARGE_CHAIN
    ]
    per_node = [call / nodes for nodes, call in calls if nodes >= _LARGE_CHAIN]
    starts = [
        late(np.subtract(idle["period_ns"], idle["span_ns"]).tolist())
        for run in runs.untraced
        for name, counts in _graphs(run)
        if _is_kernels(name, counts)
        for idle in [run["phases"]["inside"]["graphs"][name]["idle"]]
    ]
    launch_node = _cost(per_node)
    return {
        "launch_call": _cost(call for nodes, call in calls if nodes <= _SMALL_CHAIN),
        "launch_node": Cost(launch_node.value, launch_node.low, max(launch_node.high, *attached)),
        "launch_start": _cost(starts),
    }


def _idle(run: Measurements, phase: str, name: str, what: str) -> float:
    return late(run["phases"][phase]["graphs"][name]["idle"][what])


def _call_costs(traced: Sequence[Measurements]) -> dict[str, Cost]:
    def change(run: Measurements, api: str) -> float:
        inside, before = (np.median(run["phases"][phase]["api"][api]["call_ns"]) for phase in ("inside", "before"))
        return float(inside - before)

    return {name: _cost(change(run, api) for run in traced for api in apis) for name, apis in _CALLS.items()}


def measured_rows(runs: Runs) -> tuple[MeasuredRow, ...]:
    """Return the measured table: one row a chain, medians over the runs that played it."""
    return tuple(_row(runs, name) for name in _names([*runs.untraced, *runs.graph, *runs.node]))


def _row(runs: Runs, name: str) -> MeasuredRow:
    def median(some: Sequence[Measurements]) -> float | None:
        spans = [_span(run, "inside", name) for run in some if name in run["recipes"]]
        return float(np.median(spans)) if spans else None

    playing = [run for run in runs.node if name in run["recipes"]]
    operations = next(
        sum(run["recipes"][name].values()) for run in (*playing, *runs.untraced, *runs.graph) if name in run["recipes"]
    )
    changes = [added(run, name) for run in playing]
    return MeasuredRow(
        recipe=name,
        operations=operations,
        untraced_ns=median(runs.untraced) or 0.0,
        graph_mode_ns=median(runs.graph),
        node_mode_ns=median(runs.node),
        added_ns_per_operation=float(np.median(changes)) / (operations + 1) if changes else None,
    )
