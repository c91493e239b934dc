"""Recurring gaps, gap lengths, launch leads and idle spans."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import begin_and_end
from bubblefinder.lookup import NOWHERE, kept, on_gpu, places, positions, taken
from bubblefinder.report.charts import GapRow, Histogram, IdleSpan, LeadRow
from bubblefinder.report.detail.windows import inside, longest
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.model import IdleClass, Timeline
from bubblefinder.trace.model import COPY_KINDS

if TYPE_CHECKING:
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.rank import Rank

MAX_GAPS: Final = 30
MAX_LEADS: Final = 1_500
MAX_IDLE: Final = 1_000
BINS_PER_DECADE: Final = 5
MIN_EDGE_NS: Final = 10

_AROUND: Final = ("after_role", "before_role", "ended_by")


def class_name(idle_class: int) -> str:
    """Return the ledger's name of an idle class."""
    return IdleClass(idle_class).name.lower()


def idle_pieces(timeline: Timeline, decode: pl.DataFrame, rank: Rank) -> pl.DataFrame:
    """Return the idle pieces of the decode steps: gap_index, idle_class and length."""
    pieces = inside(on_gpu(timeline.pieces, rank.gpu)[["gap_index", "idle_class", "start_ns", "end_ns"]], decode)
    lengths = (pieces["end_ns"] - pieces["start_ns"]).rename("length")
    return pieces[["gap_index", "idle_class"]].hstack([lengths])


def gap_rows(timeline: Timeline, steps: Steps, pieces: pl.DataFrame, count: int) -> list[GapRow]:
    """Return the recurring gaps of `count` decode steps, the costliest first, from their `idle_pieces`.

    A gap is told by the operations around it (their role, or what they do outside replays) and by the
    call that launched the operation that ends it. Its class is the one that most of it has; what lies
    inside a replay counts apart.
    """
    inner = pieces["idle_class"] == int(IdleClass.INTRA_GRAPH)
    inside = kept(pieces, inner)
    outer = (
        kept(pieces, ~inner)
        .group_by("gap_index")
        .agg(pl.col("idle_class").sort_by("length").last(), pl.col("length").sum())
    )
    gaps = pl.concat([inside[outer.columns], outer])
    around = taken(timeline.gaps[["before_index", "after_index", "call_index", "start_ns"]], gaps["gap_index"])
    sides = gaps.hstack([around["start_ns"]]).with_columns_seq(
        after_role=labels(timeline, steps, around["before_index"]),
        before_role=labels(timeline, steps, around["after_index"]),
        ended_by=timeline.calls["api"][around["call_index"]],
        inner=pl.Series(np.arange(len(gaps)) < len(inside)),
    )
    length = pl.col("length")
    grouped = sides.group_by("inner", *_AROUND).agg(
        pl.col("idle_class").mode().min(),
        count=pl.len(),
        p50_ns=length.median(),
        max_ns=length.max(),
        total_ns=length.sum(),
        longest_start_ns=pl.col("start_ns").sort_by("length", pl.col("start_ns"), descending=[True, False]).first(),
    )
    texts = grouped.with_columns_seq(pl.col(_AROUND).cast(pl.String)).drop("inner")
    return [
        GapRow(gap_class=class_name(row.pop("idle_class")), per_step_count=row["count"] / count, **row)
        for row in texts.sort("total_ns", *_AROUND, descending=[True, *[False] * len(_AROUND)])
        .head(MAX_GAPS)
        .to_dicts()
    ]


def labels(timeline: Timeline, steps: Steps, op_index: pl.Series) -> pl.Series:
    """Return what to call some operations: their role in a replay, else what they do."""
    does = ["kernel", "copy", "memset", "replay"]
    copies = {kind: f"{text} copy" for kind, text in COPY_KINDS.items()}
    texts = list(dict.fromkeys([*steps.role_names, *does, *copies.values()]))
    rows = taken(timeline.operations[["kind", "copy_kind", "replay_index"]], op_index)
    copied = np.full(1 << 8, NOWHERE)  # a place for each of the kinds that eight bits hold; the last is that of null
    copied[list(copies)] = [texts.index(text) for text in copies.values()]
    copy = copied[places(rows["copy_kind"])]
    kind = np.array([texts.index(text) for text in does])[rows["kind"].to_numpy()]
    role = np.append(steps.role_numbers, NOWHERE)[places(rows["replay_index"])]
    number = np.where(role != NOWHERE, role, np.where(copy != NOWHERE, copy, kind))
    return pl.Series("label", texts, dtype=pl.Enum(texts))[number]


def histograms(pieces: pl.DataFrame) -> list[Histogram]:
    """Return the lengths of `idle_pieces`, a class apart, on one logarithmic axis."""
    lengths = pieces["length"].to_numpy()
    if not len(lengths):
        return []
    low = math.floor(math.log10(max(int(lengths.min()), MIN_EDGE_NS)))
    high = max(math.ceil(math.log10(int(lengths.max()) + 1)), low + 1)
    edges = np.rint(10 ** (np.arange(low * BINS_PER_DECADE, high * BINS_PER_DECADE + 1) / BINS_PER_DECADE)).astype(int)
    classes = pieces["idle_class"].to_numpy()
    return [
        Histogram(
            gap_class=class_name(idle_class),
            edges_ns=edges.tolist(),
            counts=np.histogram(np.clip(lengths[classes == idle_class], edges[0], edges[-1] - 1), edges)[0].tolist(),
        )
        for idle_class in IdleClass
        if (classes == idle_class).any()
    ]


def lead_rows(timeline: Timeline, steps: Steps, rank: Rank) -> list[LeadRow]:
    """Return the launch lead of each graph launch of a lane, evenly thinned; windows of all kinds."""
    replays = timeline.replays[["start_ns", "end_ns", "call_index"]].hstack(steps.replays[["role", "window_index"]])
    inside = pl.Series(places(replays["window_index"]) != NOWHERE)
    replays = kept(replays, rank.is_of(timeline.replays) & inside)
    leads, calls = timeline.leads, timeline.calls
    known = (leads["gpu"] == rank.gpu) & leads["lead_ns"].is_not_null()
    leads = kept(leads, known & (calls["role"][leads["call_index"]] == CallRole.LAUNCH_GRAPH))
    lead = positions(leads["call_index"].to_numpy(), places(replays["call_index"]), len(calls))
    replays = kept(replays.hstack([leads["lead_ns"][lead]]), places(lead) != NOWHERE)
    shown = replays[:: math.ceil(len(replays) / MAX_LEADS) or 1]
    called = taken(calls[["start_ns", "end_ns"]], shown["call_index"])
    index = steps.windows["index"][shown["window_index"]]
    columns = (index, *shown[["role", "start_ns", "end_ns"]], *called, shown["lead_ns"])
    names = ("index", "role", "start_ns", "end_ns", "call_start_ns", "call_end_ns", "lead_ns")
    return [
        LeadRow(gpu=rank.gpu, pid=rank.pid, **dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)
    ]


def launches_per_step(timeline: Timeline, decode: pl.DataFrame, rank: Rank) -> float:
    """Return how many calls of the lane's process put work on the GPU in a decode step."""
    first = taken(timeline.operations[["start_ns", "process"]], on_gpu(timeline.leads, rank.gpu)["op_index"])
    times = kept(first, first["process"] == rank.process)["start_ns"].to_numpy()
    low, high = (np.searchsorted(times, bounds) for bounds in begin_and_end(decode))
    return int((high - low).sum()) / len(decode)


def idle_spans(timeline: Timeline, rank: Rank) -> tuple[list[IdleSpan], int]:
    """Return the longest idle pieces outside the graphs in time order, and how many were left out."""
    pieces = on_gpu(timeline.pieces, rank.gpu)[["start_ns", "end_ns", "idle_class"]]
    pieces = kept(pieces, pieces["idle_class"] != int(IdleClass.INTRA_GRAPH))
    shown = longest(pieces, MAX_IDLE)
    spans = [
        IdleSpan(gpu=rank.gpu, gap_class=class_name(idle_class), start_ns=start, end_ns=end)
        for start, end, idle_class in shown.iter_rows()
    ]
    return spans, len(pieces) - len(shown)
