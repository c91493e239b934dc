"""What the profiler added, and what the step takes without it, by the best that is known of the run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.overhead.calibration import bundled_calibrations, likely_costs, mismatch
from bubblefinder.overhead.model import TOLD, WIDEST, ZERO, Calibration, Cost, Costs, Overhead, Source, parameters_of
from bubblefinder.replay.corrected import TracedSteps, traced_steps, without_tracing
from bubblefinder.replay.hosts import HOST_NOISE, host_noise
from bubblefinder.replay.known_step import HOST_BOUND_SHARE, known_step
from bubblefinder.replay.reference import Reference, correct_by_reference, read_reference
from bubblefinder.replay.summary import summarise
from bubblefinder.timeline.missing import missing_work
from bubblefinder.timeline.model import CaptureMode
from bubblefinder.units import duration, milliseconds, share

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.overhead.model import Method
    from bubblefinder.replay.model import Model
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

_BETTER: Final = "Give --reference (the same workload captured in graph mode)"
_OR_COSTS: Final = f"{_BETTER}, --untraced-step-ms, or the file that `bubblefinder calibrate` writes."
_NO_COSTS: Final = f"{_BETTER} or --untraced-step-ms: costs hold for a collector that is named."
_NOISY: Final = (
    " The GPU waits for the host here, whose own speed differs between runs: the range allows it an eighth, or twice "
    "what its work varies from step to step."
)
_OF_ANOTHER_MINUTE: Final = 0.25
"""How much faster a host may be than recorded where the range tells too little for a value anyway: five untraced runs
of one process of SGLang or vLLM lay up to a fifth apart, and two processes of vLLM with piecewise graphs took 6.2 and
9.2 ms on a virtual machine whose other cores were busy. A range that allows for an eighth misses the first."""
_MOST_IN_A_PROGRAM: Final = {"kernel_call": 6_000.0, "copy_call": 8_000.0, "around_call": 25_000.0}
"""What tracing added to calls of host-bound PyTorch programs on H200s, at most: see docs/overhead.md."""
_LEAST_GRAPH_LAUNCH: Final = Cost.exactly(10_000.0)
"""What the launch of a whole graph takes untraced, at least; in graph mode, which doesn't count its nodes, one of 1,690
took 400 to 480 us instead of 30 to 40: see docs/overhead.md."""
_HOST_UNKNOWN: Final = (
    "What the profiler added can't be told from this capture: the GPU waits for the host, and tracing adds 2 to 21 us "
    "to each API call of such a program. Give --untraced-step-ms or --reference."
)
_SLOWED: Final = (
    " The step without the profiler can't be told even so: the GPU waits for the host, which graph mode slows as well. "
    "Give --untraced-step-ms."
)


def correct(timeline: Timeline, steps: Steps, model: Model | None, rows: pl.DataFrame, source: Source) -> Overhead:
    """Return the correction of the decode steps of one process on one GPU.

    Args:
        timeline: the capture.
        steps: its steps.
        model: the recorded run; null for a capture that can't be replayed.
        rows: the decode steps: gpu, process, start_ns, end_ns; may be empty.
        source: what is known of the run without a profiler.

    Raises:
        CannotAnswerError: the reference is no graph-mode capture of the same steps.
    """
    if rows.is_empty():
        return _nothing(None, "There are no decode steps to correct.")
    if model is None or source.reference is not None:
        return _correct(timeline, steps, model, rows, source)
    key = (correct, *rows[["gpu", "process"]].row(0), rows["start_ns"].to_numpy().tobytes(), source)
    return model.once(key, lambda: _correct(timeline, steps, model, rows, source))


def _correct(timeline: Timeline, steps: Steps, model: Model | None, rows: pl.DataFrame, source: Source) -> Overhead:
    step = float(np.median((rows["end_ns"] - rows["start_ns"]).to_numpy()))
    traced = replayable(timeline, steps, model, rows)
    if traced is None:
        return _nothing(step, uncorrectable(timeline))
    costs, method, why = measured_costs(timeline, traced.gpu, source)
    if source.reference is not None:
        reference = read_reference(source.reference, traced.gpu)
        return _as_sure_as_its_host(correct_by_reference(timeline, traced, reference, costs), reference, source)
    if source.untraced_step_ns is not None:
        return _by_untraced_step(timeline, traced, source, source.untraced_step_ns)
    if costs is None:
        better = _OR_COSTS if timeline.trace.info.cupti_version else _NO_COSTS
        return _nothing(step, f"Raw numbers only: {why}. {better}")
    return _by_costs(traced, costs, method, why)


def _as_sure_as_its_host(found: Overhead, reference: Reference, source: Source) -> Overhead:
    """Return what a reference gives, as sure as the reference itself is of its step without the profiler.

    Where its GPU waits for the host, graph mode isn't free either: eager launches and graph launches are traced, and
    the host's own speed differs between runs.
    """
    outside = found.corrected_bubble_share.inter_graph if found.corrected_bubble_share else None
    if outside is None or outside < HOST_BOUND_SHARE or found.range_ns is None:
        return found
    own = _by_itself(reference, source)
    if own.range_ns is None:
        low, high = found.range_ns
        least = sum(found.corrected.get(part) or 0 for part in ("busy", "intra_graph"))
        wider = max(round((1 - HOST_NOISE) * low), min(least, low)), round((1 + HOST_NOISE) * high)
        return replace(found, range_ns=wider, message=found.message + _NOISY)
    step = found.corrected_step_ns or 0
    held = replace(found, range_ns=(min(own.range_ns[0], step), max(own.range_ns[1], step)))
    if _untold(held):
        return _only_range(held, found.message + _SLOWED)
    return replace(held, message=found.message + _NOISY)


def _by_itself(reference: Reference, source: Source) -> Overhead:
    """Return what is known of a reference's own step without the profiler: from costs, on its replayed run."""
    costs = Source(calibration=source.calibration, bundled=source.bundled)
    return correct(reference.timeline, reference.steps, reference.model, reference.rows, costs)


def replayable(timeline: Timeline, steps: Steps, model: Model | None, rows: pl.DataFrame) -> TracedSteps | None:
    """Return the decode steps that can be replayed without the profiler; null if none can."""
    if model is None or timeline.mode is CaptureMode.MIXED:
        return None
    traced = traced_steps(timeline, steps, model, rows)
    return None if traced.recorded.rows.is_empty() else traced


def uncorrectable(timeline: Timeline) -> str:
    """Say why none of the decode steps of a capture can be."""
    if missing := missing_work(timeline.mode, timeline.trace.notes):
        return f"These steps can't be corrected: {missing.why}."
    if timeline.mode is CaptureMode.MIXED:
        return "A capture of mode mixed can't be corrected: its graph work is incomplete."
    if timeline.walked:
        return "Walking the stack at every call made these steps far longer: take times from a capture without chains."
    return "None of these steps can be replayed, so none can be corrected: their GPU is shared, or work is missing."


def _nothing(traced: float | None, message: str) -> Overhead:
    return Overhead(traced_step_ns=None if traced is None else round(traced), message=message)


def measured_costs(timeline: Timeline, gpu: int, source: Source) -> tuple[Costs | None, Method, str]:
    """Return the first calibration that holds for the capture, and where it comes from or why there is none."""
    info, reasons = timeline.trace.info, list[str]()
    candidates: list[tuple[Calibration, Method]] = [(source.calibration, "calibration")] if source.calibration else []
    candidates += [(one, "assumed") for one in (bundled_calibrations() if source.bundled else ())]
    for calibration, method in candidates:
        reason = mismatch(calibration, info, gpu)
        if reason is None:
            costs = calibration.graph if timeline.mode is CaptureMode.GRAPH else calibration.node
            return costs, method, f"{calibration.gpu}, CUPTI {calibration.cupti}, driver {calibration.driver}"
        reasons.append(reason)
    return None, "none", reasons[0] if reasons else "nothing is known of the run without a profiler"


def _by_costs(traced: TracedSteps, costs: Costs, method: Method, where: str) -> Overhead:
    middle = without_tracing(traced, costs)
    outside = traced.bubble_share(middle.rows).inter_graph
    noise = host_noise(traced.model) if outside is not None and outside >= HOST_BOUND_SHARE else 0.0
    ends = [
        without_tracing(traced, costs.least(), host_speed=1 - noise),
        without_tracing(traced, in_a_program(costs.most()), host_speed=1 + noise),
    ]
    told = "assumed from measurements on" if method == "assumed" else "calibrated on"
    summary = summarise(traced, middle, ends, method, {**parameters_of(costs), "from": f"{told} {where}"})
    source = f"Costs are {told} {where}.{_left_out(traced)}"
    if _untold(summary):
        faster = 1 + max(noise, _OF_ANOTHER_MINUTE)
        ends[1] = without_tracing(traced, in_a_program(costs.most()), host_speed=faster)
        summary = summarise(traced, middle, ends, method, summary.parameters)
        return _only_range(summary, f"{_HOST_UNKNOWN} {source}")
    if noise:
        return replace(summary, message=_sentence(summary, source + _NOISY, "By these costs alone the profiler"))
    return replace(summary, message=_sentence(summary, source))


def _left_out(traced: TracedSteps) -> str:
    """Say how many steps were replayed where not all were."""
    replayed = len(traced.recorded.rows)
    return f" Told by {replayed:,} steps from the middle of the capture." if traced.model.left_out else ""


def in_a_program(costs: Costs) -> Costs:
    """Return the costs with those of calls at least as high as real programs have shown them."""
    raised = {name: max(getattr(costs, name).value, most) for name, most in _MOST_IN_A_PROGRAM.items()}
    launch = {} if costs.launch_call else {"launch_call": _LEAST_GRAPH_LAUNCH, "launch_node": ZERO}
    return replace(costs, **{name: Cost.exactly(value) for name, value in raised.items()}, **launch)


def _untold(overhead: Overhead) -> bool:
    """Say whether the range is so wide that its middle says nothing."""
    if overhead.range_ns is None:
        return False
    (low, high), middle = overhead.range_ns, overhead.corrected_step_ns or 0
    return low < TOLD * middle or high - low > WIDEST * middle


def _only_range(overhead: Overhead, message: str) -> Overhead:
    """Return what is known where the correction can't be told: the range of the step, and no value in it."""
    return Overhead(
        method=overhead.method,
        traced_step_ns=overhead.traced_step_ns,
        range_ns=overhead.range_ns,
        corrected_bubble_share_range=overhead.corrected_bubble_share_range,
        parameters=overhead.parameters,
        message=message,
    )


def untraced_costs(timeline: Timeline, gpu: int, source: Source) -> tuple[Costs | None, str]:
    """Return what tracing is known to cost beside a measured untraced step, and where that was measured.

    There the costs of such a machine are taken where the capture names no driver too: the step makes up for it.
    """
    costs, _, where = measured_costs(timeline, gpu, source)
    if costs is None and source.bundled:
        return likely_costs(timeline, gpu), "such a GPU with this collector"
    return costs, where


def _by_untraced_step(timeline: Timeline, traced: TracedSteps, source: Source, step_ns: float) -> Overhead:
    """Return the correction that gives a known step: a mean is held against the mean, a median against the median."""
    known, where = untraced_costs(timeline, traced.gpu, source)
    found = known_step(traced, known, step_ns, mean=source.untraced_is_mean)
    costs, factor, speed = found.costs, found.factor, found.host_speed
    middle, *ends = (
        without_tracing(traced, replace(costs, gap_share=share), factor, speed)
        for share in (costs.gap_share, costs.gap_share.fixed("low"), costs.gap_share.fixed("high"))
    )
    shape = f"in the proportions measured on {where}" if known else "the same for every graph node"
    parameters = {
        **parameters_of(costs.scaled(factor)),
        "factor": factor,
        "host_speed": speed,
        "untraced_step_ns": step_ns,
        "from": shape,
    }
    summary = summarise(traced, middle, [middle, *ends], "untraced_step", parameters)
    median = round(found.median_ns - found.missed_ns)
    summary = replace(
        summary,
        corrected_step_ns=median,
        range_ns=(median, median),
        inflation=(summary.traced_step_ns or 0) / median,
        unexplained_ns=round(found.missed_ns),
    )
    given = "mean" if source.untraced_is_mean else "median"
    how = f"Costs are solved for the {given} untraced step, {shape}."
    if speed != 1:
        first = f"Beside costs as measured on {where}, the" if known else "The"
        how = f"{first} {given} untraced step given is that of a host {speed:.3g} times as fast as recorded."
    return replace(summary, message=_sentence(summary, how))


def _sentence(overhead: Overhead, source: str, profiler: str = "The profiler") -> str:
    traced, corrected = overhead.traced_step_ns or 0, overhead.corrected_step_ns or 0
    change = traced - corrected
    if not change:
        said = f"The traced step of {milliseconds(traced)} ms needs no correction."
    else:
        moved = f"added {duration(change)} to" if change > 0 else f"took {duration(-change)} off"
        percent = abs(change) / corrected if corrected else 0
        said = (
            f"{profiler} {moved} the step ({share(percent)}): "
            f"{milliseconds(traced)} ms traced, {milliseconds(corrected)} ms without it."
        )
        said += "" if change > 0 else " The traced program was faster than the untraced one."
    return f"{said} {source}"
