"""From causes to facts: everything the rules may look at, one record a subject."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from bubblefinder.causes.collective_facts import collective_costs
from bubblefinder.causes.decode import RankSteps, call_rows, lanes, p50
from bubblefinder.causes.facts import Facts, SiteFacts, StepFacts
from bubblefinder.causes.host_facts import hole_facts, late_calls
from bubblefinder.causes.host_time import host_time, longest, main_thread
from bubblefinder.causes.queue_facts import queue_facts
from bubblefinder.causes.recurring import recurring_groups
from bubblefinder.causes.role_facts import find_spans, role_facts, seam_facts, span_of_pieces
from bubblefinder.causes.site_facts import facts_of_sites, site_facts
from bubblefinder.causes.skew_facts import Met, find_met, skew_facts
from bubblefinder.causes.thresholds import OWN_COPY_NS
from bubblefinder.intervals import inside, split, union_of
from bubblefinder.lookup import column_of, kept, on_gpu, where
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.launches import LAUNCHES
from bubblefinder.timeline.missing import untold
from bubblefinder.timeline.model import INTER, LATE, CaptureMode, IdleClass
from bubblefinder.trace.model import COPY_KINDS, MEMCPY
from bubblefinder.trace.programs import find_programs

if TYPE_CHECKING:
    from bubblefinder.causes.model import Causes
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

_HOST_COPIES: Final = (1, 2)
"""From the host and to it."""
_MEASURED: Final = (CaptureMode.NODE, CaptureMode.MIXED)
_COSTS: Final = ("blocked_p50_ns", "blocked_p95_ns", "bubble_p50_ns", "bubble_p95_ns", "bubble_share")


def build_facts(timeline: Timeline, steps: Steps, causes: Causes) -> Facts:
    """Return what the rules look at; `recoverable_ns` fields are left to the what-if replay.

    Where work is missing, nobody knows where, there are no facts: what looks idle may have been busy.
    """
    if untold(timeline):
        return Facts(sites=(), steps=())
    found = list(lanes(timeline, steps, causes))
    if timeline.walked:
        return _names_only(timeline, causes, found)
    met = find_met(timeline, steps, causes)
    return Facts(
        programs=find_programs(timeline.trace),
        sites=tuple(site for lane in found for site in site_facts(timeline, causes, lane)),
        steps=tuple(_step(timeline, causes, lane, found, met) for lane in found),
    )


def _names_only(timeline: Timeline, causes: Causes, found: list[RankSteps]) -> Facts:
    """Return every wait that recurs, without what it costs, and the steps without any figure."""
    sites = (
        _unpriced(facts_of_sites(timeline, causes, lane, group))
        for lane in found
        for group in recurring_groups(causes, lane)
    )
    steps = (
        StepFacts(gpu=lane.gpu, process=lane.process, mode=timeline.mode.value, steps=lane.steps) for lane in found
    )
    return Facts(sites=tuple(sites), steps=tuple(steps), programs=find_programs(timeline.trace))


def _unpriced(site: SiteFacts) -> SiteFacts:
    unknown: dict[str, Any] = dict.fromkeys(_COSTS)
    return replace(site, members=tuple(_unpriced(member) for member in site.members), held=False, **unknown)


def _step(timeline: Timeline, causes: Causes, lane: RankSteps, every: list[RankSteps], met: Met) -> StepFacts:
    spans = find_spans(timeline, causes, lane)
    owner = span_of_pieces(lane, spans)
    thread = main_thread(causes, lane)
    host = host_time(timeline, causes, lane, thread) if thread is not None else None
    others = [other for other in every if other is not lane]
    classes = LATE[:1] if timeline.mode is CaptureMode.NODE else LATE
    uncharged = np.isin(lane.pieces.idle_class, classes) & ~lane.pieces.charged
    late = lane.idle(uncharged)
    dry = timeline.pieces["gap_index"][lane.pieces.index[uncharged & (lane.pieces.idle_class == IdleClass.HOST_LATE)]]
    return StepFacts(
        gpu=lane.gpu,
        process=lane.process,
        mode=timeline.mode.value,
        steps=lane.steps,
        step_p50_ns=lane.step_p50_ns,
        **_shares(timeline, lane),
        host_slow_p50_ns=p50(late),
        host_slow_mean_ns=float(late.mean()) if lane.steps else None,
        host_slow_share=lane.share(late.sum()),
        **(late_calls(timeline, lane, thread, uncharged) if thread is not None else {}),
        run_ahead_share=_run_ahead(timeline, lane),
        waits_share=lane.share(lane.idle(lane.pieces.awaited).sum()),
        **_launches(causes, lane),
        host_work_p50_ns=host.calls_p50_ns + host.between_p50_ns if host else None,
        host_longest=longest(host) if host else (),
        host=host,
        roles=tuple(role_facts(timeline, lane, spans, owner)),
        seams=tuple(seam_facts(timeline, causes, lane, spans, owner)),
        holes=tuple(hole_facts(timeline, causes, lane, others)),
        queues=tuple(queue_facts(timeline, lane)),
        **_copies_alone(timeline, lane),
        **collective_costs(timeline, lane, met.collectives),
        skews=tuple(skew_facts(timeline, lane, every, met)),
        evidence=call_rows(timeline, timeline.gaps["call_index"][dry.unique(maintain_order=True)]),
    )


def _shares(timeline: Timeline, lane: RankSteps) -> dict[str, Any]:
    """Return busy and each idle class as a share of the decode steps."""
    if not lane.steps:
        return {}
    within = np.append(lane.decode, False)[lane.pieces.window]
    total = np.bincount(lane.pieces.idle_class[within], weights=lane.pieces.ns[within], minlength=len(IdleClass))
    share = [lane.share(ns) for ns in total]
    measured = timeline.mode in _MEASURED
    return {
        "busy_share": 1 - float(total.sum()) / float(lane.durations.sum()),
        "intra_graph_share": share[IdleClass.INTRA_GRAPH] if measured else None,
        "host_late_share": share[IdleClass.HOST_LATE],
        "launching_share": share[IdleClass.LAUNCHING],
        "queued_share": share[IdleClass.QUEUED],
        "unattributed_share": share[IdleClass.UNATTRIBUTED],
        "inter_share": lane.share(sum(total[name] for name in INTER)),
    }


def _copies_alone(timeline: Timeline, lane: RankSteps) -> dict[str, Any]:
    """Return how much of the decode time goes into longer copies between host and GPU with nothing beside them."""
    rows = on_gpu(timeline.operations[["gpu", "kind", "copy_kind", "start_ns", "end_ns"]], lane.gpu)
    moves = (pl.col("kind") == MEMCPY) & pl.col("copy_kind").is_in(_HOST_COPIES)
    long = pl.col("end_ns") - pl.col("start_ns") >= OWN_COPY_NS
    copies = rows.pipe(where, moves & long)
    if copies.is_empty() or not lane.steps:
        return {}
    cover, others = union_of(copies), union_of(rows.filter(~moves))
    starts, ends, _ = split(cover.starts, cover.ends, np.concatenate([others.starts, others.ends, lane.starts]))
    alone = ~inside(starts, others) & (ends - starts >= OWN_COPY_NS)  # not the gaps between kernels beside a copy
    starts, ends = starts[alone], ends[alone]
    total = lane.per_step(lane.windows(starts), ends - starts).sum()
    lengths = copies.group_by("copy_kind").agg(ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    most = lengths.sort("ns", "copy_kind")["copy_kind"][-1]
    return {"copies_alone_share": lane.share(total), "copies_alone_kind": COPY_KINDS.get(most)}


def _run_ahead(timeline: Timeline, lane: RankSteps) -> float | None:
    """Return the share of a process's launch calls whose work was queued before the GPU was free."""
    leads = on_gpu(timeline.leads, lane.gpu)
    process = column_of(timeline.calls, "process")[leads["call_index"]]
    leads = kept(leads, (process == lane.process) & ~leads["blocking"])
    known = leads["lead_ns"].drop_nulls()
    return float((known > 0).sum()) / len(known) if len(known) else None


def _launches(causes: Causes, lane: RankSteps) -> dict[str, Any]:
    """Return launch calls per step, graph launches among them, and the host time inside launch calls."""
    mine = lane.rows_of(on_gpu(causes.submitted, lane.gpu))
    window = lane.own(mine["window_index"])
    graphs = (mine["api_role"] == CallRole.LAUNCH_GRAPH).to_numpy()
    launch = mine["api_role"].is_in([int(role) for role in LAUNCHES]).to_numpy()
    inside = np.where(launch, (mine["end_ns"] - mine["start_ns"]).to_numpy(), 0)
    per_step = {
        "launches_per_step": lane.per_step(window, np.ones(len(mine))).mean() if lane.steps else None,
        "graph_launches_per_step": lane.per_step(window, graphs.astype(np.int64)).mean() if lane.steps else None,
        "launch_p50_ns": p50(lane.per_step(window, inside)),
    }
    return {name: None if value is None else float(value) for name, value in per_step.items()}
