"""The facts of roles: replays and eager phases, their inside, and the seams between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.decode import RankSteps, call_rows, operation_rows, p50, spread
from bubblefinder.causes.fallbacks import where_it_runs
from bubblefinder.causes.role_kernels import inside_facts
from bubblefinder.causes.step_parts import RoleFacts, SeamFacts
from bubblefinder.intervals import begin_and_end, every_position, held_by, last_before, one_of
from bubblefinder.lookup import NOWHERE, changes, column_of, kept, on_gpu, places, taken, where
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.model import INTER, IdleClass
from bubblefinder.trace.model import KERNEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.causes.model import Causes
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.timeline.model import Timeline

GLUE_NS: Final = 4_000
_LOOKED_INTO: Final = 48
"""Spans of a role whose kernels are looked at one by one, spread over the capture."""
_MOST_NAMES: Final = 8


def find_spans(timeline: Timeline, causes: Causes, lane: RankSteps) -> pl.DataFrame:
    """Return the replays and eager phases of a lane in the order in which they run.

    Returns:
        role, eager, start_ns and end_ns (first start and last end of its operations), launches,
        launch_ns (time inside its launch calls), called_ns and returned_ns (begin of the first of these calls, end of
        the last), waits (of its thread between these two), nodes (null in graph mode), first_call, replay_index,
        window (number in the lane).
    """
    submitted = on_gpu(causes.submitted, lane.gpu)
    own = (pl.col("process") == lane.process) & pl.col("role").is_not_null()
    mine = submitted.select(own).to_series().arg_true()
    called, returned = begin_and_end(taken(submitted[["start_ns", "end_ns"]], mine))
    starts, ends = begin_and_end(taken(timeline.operations[["start_ns", "end_ns"]], submitted["op_index"][mine]))
    first = np.flatnonzero(changes(submitted["phase"][mine].to_numpy()))
    firsts = taken(submitted[["thread", "role", "replay_index", "call_index"]], mine[first])
    replays = timeline.replays.select_seq(replay_start_ns="start_ns", replay_end_ns="end_ns", nodes="nodes")
    spans = firsts.hstack(replays[firsts["replay_index"]]).select_seq(
        "thread",
        pl.col("role").cast(pl.String),
        "replay_index",
        "nodes",
        eager=pl.col("replay_index").is_null(),
        start_ns=pl.coalesce("replay_start_ns", pl.Series(np.minimum.reduceat(starts, first))),
        end_ns=pl.coalesce("replay_end_ns", pl.Series(np.maximum.reduceat(ends, first))),
        launches=pl.Series(np.diff(np.append(first, len(mine)))),
        launch_ns=pl.Series(np.add.reduceat(returned - called, first)),
        called_ns=pl.Series(np.minimum.reduceat(called, first)),
        returned_ns=pl.Series(np.maximum.reduceat(returned, first)),
        first_call="call_index",
    ).sort("start_ns", maintain_order=True)  # fmt: skip
    windows = pl.Series(lane.windows(spans["start_ns"].to_numpy()), dtype=pl.Int64)
    return spans.with_columns_seq(window=windows, waits=_waits_among(causes, spans))


def _waits_among(causes: Causes, spans: pl.DataFrame) -> pl.Series:
    """Count for each span the waits of its thread that begin between its launch calls."""
    waits = causes.waits[["thread", "start_ns"]]
    counts = np.zeros(len(spans), np.int64)
    for mine in spans.with_row_index("span").partition_by("thread"):
        thread = mine["thread"][0]
        began = kept(waits, waits["thread"] == thread)["start_ns"].sort().to_numpy()
        first, last = (np.searchsorted(began, mine[name].to_numpy()) for name in ("called_ns", "returned_ns"))
        counts[mine["span"].to_numpy()] = last - first
    return pl.Series(counts)


def role_facts(timeline: Timeline, lane: RankSteps, spans: pl.DataFrame, owner: Ints) -> Iterator[RoleFacts]:
    """Yield one record a role, in the order of the step.

    Args:
        timeline: the timeline.
        lane: whose roles.
        spans: from `find_spans`.
        owner: from `span_of_pieces`.
    """
    window = spans["window"].to_numpy()
    decode = kept(spans, (window >= 0) & lane.decode[window])
    replayed = set(kept(decode, ~decode["eager"])["role"].unique())
    for mine in decode.partition_by("role", maintain_order=True):
        yield _role(timeline, lane, spans, mine, owner, replayed=replayed)


def _role(
    timeline: Timeline, lane: RankSteps, spans: pl.DataFrame, mine: pl.DataFrame, owner: Ints, *, replayed: set[str]
) -> RoleFacts:
    role, eager = mine["role"][0], bool(mine["eager"][0])
    lengths = (mine["end_ns"] - mine["start_ns"]).to_numpy()
    length = p50(lengths)
    count = len(mine) / lane.steps if lane.steps else None
    window = mine["window"].to_numpy()
    measured = eager or not mine["nodes"].null_count()
    chosen = (owner >= 0) & (spans["role"] == role).to_numpy()[owner]
    chosen &= one_of(lane.pieces.idle_class, INTER if eager else (IdleClass.INTRA_GRAPH,))
    idle = lane.idle(chosen)
    total = idle.sum()
    spanned = lane.per_step(window, lengths)
    if eager:  # a replay may span several steps, as one with a WHILE node does; a phase belongs to one
        within = spans["window"].to_numpy()[owner[chosen]]
        idle = lane.per_step(within, lane.pieces.ns[chosen])[spanned > 0]
    launches = lane.per_step(window, mine["launches"].to_numpy())
    step = lane.step_p50_ns
    sample = mine[spread(pl.Series(np.arange(len(mine))), _LOOKED_INTO)]
    return RoleFacts(
        gpu=lane.gpu,
        process=lane.process,
        role=role,
        eager=eager,
        siblings_replay=bool(replayed - {role}),
        replays=tuple(sorted(replayed)),
        per_step_count=count,
        span_p50_ns=length,
        span_share=length * count / step if length is not None and count and step else None,
        nodes=p50(launches[spanned > 0]) if eager else mine["nodes"].median(),  # type: ignore[arg-type]
        step_span_p50_ns=p50(spanned[spanned > 0]),
        idle_p50_ns=p50(idle) if measured else None,
        idle_share=lane.share(total) if measured else None,
        launch_p50_ns=p50(lane.per_step(window, mine["launch_ns"].to_numpy())),
        waits=p50(lane.per_step(window, mine["waits"].to_numpy())) or 0.0,
        unbroken=p50((mine["launches"] / (mine["waits"] + 1)).to_numpy()) if eager else None,
        evidence=call_rows(timeline, mine["first_call"]),
        **(where_it_runs(lane, spans, role) if eager else {}),
        **(
            inside_facts(timeline, lane, _operations_of(timeline, lane, sample), len(sample), count or 0.0)
            if measured
            else {}
        ),
    )


def span_of_pieces(lane: RankSteps, spans: pl.DataFrame) -> Ints:
    """Return for each idle piece of a lane the position of the span it lies in, -1 outside."""
    return held_by(lane.pieces.starts, *begin_and_end(spans))


def _operations_of(timeline: Timeline, lane: RankSteps, spans: pl.DataFrame) -> pl.DataFrame:
    """Return the operations of some spans, in order, with `span`: the position of their span."""
    here = on_gpu(timeline.operations, lane.gpu)
    starts, (begins, ends) = here["start_ns"].to_numpy(), begin_and_end(spans)
    at, span = every_position(np.searchsorted(starts, begins), np.searchsorted(starts, ends, side="right"))
    if spans["eager"][0]:
        at = np.unique(at)
        span = held_by(starts[at], begins, ends)
        mine = (span != NOWHERE) & (column_of(here, "process").to_numpy()[at] == lane.process)
    else:
        mine = places(here["replay_index"][at]) == spans["replay_index"].to_numpy()[span]
    at, span = at[mine], span[mine]
    order = np.argsort(at)
    found = taken(here[["kind", "start_ns", "end_ns", "stream", "name"]], at[order])
    return found.hstack([pl.Series("span", span[order])])


def seam_facts(
    timeline: Timeline, causes: Causes, lane: RankSteps, spans: pl.DataFrame, owner: Ints
) -> Iterator[SeamFacts]:
    """Yield one record a seam that idles or holds glue: the stretch between two roles, in the order of the step.

    Args:
        timeline: the timeline.
        causes: its causes.
        lane: whose seams.
        spans: from `find_spans`.
        owner: from `span_of_pieces`.
    """
    if spans.is_empty():
        return
    glue = _glue(timeline, causes, lane)
    idles = np.flatnonzero((owner < 0) & ~lane.pieces.charged & one_of(lane.pieces.idle_class, INTER))
    free = idles[_between_glue(timeline, lane.pieces.index[idles], glue)]
    seams = spans.select_seq(after_role="role", before_role=pl.col("role").shift(-1)).with_row_index("seam")
    starts = spans["start_ns"].to_numpy()
    at_piece = last_before(lane.pieces.starts[free], starts)
    at_glue = last_before(glue["start_ns"].to_numpy(), starts)
    for pair in seams.drop_nulls().partition_by("after_role", "before_role", maintain_order=True):
        here = pair["seam"].to_numpy()
        kernels = kept(glue, np.isin(at_glue, here))
        idle = lane.idle(free[np.isin(at_piece, here)])
        begun = [kernels["start_ns"].to_numpy(), starts[here]]
        count, passed = (lane.per_step(lane.windows(times), np.ones(len(times))) for times in begun)
        if idle.any() or count.any():
            names = kernels["name"].value_counts(sort=True)["name"].head(_MOST_NAMES)
            yield SeamFacts(
                gpu=lane.gpu,
                process=lane.process,
                after_role=pair["after_role"][0],
                before_role=pair["before_role"][0],
                glue_kernels=(p50(count) or 0.0) / max(p50(passed) or 0.0, 1.0),
                glue_names=tuple(timeline.trace.names.get(name, "?") for name in names),
                idle_p50_ns=p50(idle),
                idle_share=lane.share(idle.sum()),
                evidence=operation_rows(timeline, kernels["op_index"]),
            )


def _between_glue(timeline: Timeline, pieces: Ints, glue: pl.DataFrame) -> Bools:
    """Tell the pieces of gaps that a glue kernel ends and that no replay opens.

    The gap before the first kernel of a chain is what the host did before it, and the one behind the last belongs to
    the launch that ends it: fusing the chain takes neither away.
    """
    gap = timeline.pieces["gap_index"][pieces]
    around = taken(timeline.gaps[["before_index", "after_index"]], gap)
    eager = column_of(timeline.operations, "replay_index")[around["before_index"]].is_null()
    behind = timeline.operations["kind"][around["before_index"]] == KERNEL
    return (eager & behind & around["after_index"].is_in(glue["op_index"].implode())).to_numpy()


def _glue(timeline: Timeline, causes: Causes, lane: RankSteps) -> pl.DataFrame:
    """Return the short kernels of a lane that belong to no replay and no eager phase."""
    loose = causes.submitted.pipe(
        where,
        (pl.col("gpu") == lane.gpu)
        & (pl.col("process") == lane.process)
        & pl.col("role").is_null()
        & pl.col("replay_index").is_null()
        & (pl.col("api_role") == CallRole.LAUNCH_KERNEL),
    )
    operations = taken(timeline.operations[["start_ns", "end_ns", "name"]], loose["op_index"])
    kernels = operations.with_columns(op_index=loose["op_index"])
    return kept(kernels, kernels["end_ns"] - kernels["start_ns"] <= GLUE_NS).sort("start_ns")
