"""The account of the decode steps of each rank: busy time by node, idle time by what the host did meanwhile."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import Ints, begin_and_end, distinct, every_position, held_by, within
from bubblefinder.lookup import Numbers, column_of, kept, on_gpu, places
from bubblefinder.report.account import FOREIGN, OTHERS, REPLAY, UNSEEN, Account, EagerAccount, RoleAccount, Shapes
from bubblefinder.report.detail.host_account import calls_of, idle_of
from bubblefinder.report.detail.kernels import kernel_name
from bubblefinder.timeline.missing import untold
from bubblefinder.timeline.model import IdleClass, Timeline
from bubblefinder.timeline.rank import Rank
from bubblefinder.trace.model import COPY_KINDS, GRAPH, KERNEL, MEMSET

if TYPE_CHECKING:
    from bubblefinder.causes.model import Causes
    from bubblefinder.steps.model import Steps

MOST_EAGER: Final = 400
"""Names outside replays that are kept apart; the rest, the shortest, are one row."""
MOST_STEPS: Final = 128
"""Nodes are looked at in so many steps at most, evenly spread; idle time outside replays in all."""
_TOLD_BY: Final = ("kind", "row", "process", "stream", "graph_node", "name", "copy_kind", "replay_index")
_SHAPE: Final = ("grid", "block", "registers", "shared_bytes", "local_bytes")
_SUMS: Final = ("count", "own_ns", "gap_ns", "ran_ns", "early_ns")


def accounts(timeline: Timeline, steps: Steps, causes: Causes, shapes: pl.DataFrame | None = None) -> list[Account]:
    """Return the account of every rank with decode steps, lowest GPU first.

    `shapes` says of each `row` of a KERNEL table how it was launched, see `trace.shapes`; null where nobody asked.
    """
    if untold(timeline):
        return []
    ranks = Rank.in_rows(kept(steps.windows, steps.decode))
    return [_account(timeline, steps, causes, rank, shapes) for rank in ranks]


def _account(timeline: Timeline, steps: Steps, causes: Causes, rank: Rank, shapes: pl.DataFrame | None) -> Account:
    mine = rank.is_of(steps.windows)
    windows, counted = kept(steps.windows, mine), steps.decode.filter(mine)
    decode = kept(windows, counted)
    seen = decode[:: -(-len(decode) // MOST_STEPS)]
    work = _with_shapes(_work(timeline, steps, rank, seen), shapes)
    times, replayed = len(decode) / len(seen), work["replay_index"].is_not_null()
    texts = Numbers()
    account = Account(
        gpu=rank.gpu,
        pid=rank.pid,
        steps=len(decode),
        duration_ns=int((decode["end_ns"] - decode["start_ns"]).sum()),
        roles=_roles(kept(work, replayed), times, timeline, texts),
        eager=_eager(kept(work, ~replayed), times, timeline, texts),
        idle=idle_of(timeline, steps, causes, rank, windows["start_ns"].to_numpy(), counted.to_numpy()),
        calls=calls_of(timeline, steps, rank, (int(decode["start_ns"][0]), int(decode["end_ns"][-1]))),
        names=[],
    )
    return replace(account, eager=[*account.eager, *_unseen(account, texts)], names=list(texts))


def _unseen(account: Account, texts: Numbers) -> list[EagerAccount]:
    """Return what the steps that were not looked into add beyond those that were, so that the account sums."""
    told = sum(sum(role.own_ns) + sum(role.gap_ns) for role in account.roles)
    told += sum(one.own_ns + one.gap_ns for one in account.eager) + sum(one.ns for one in account.idle)
    left = account.duration_ns - told
    return [EagerAccount(name=texts[UNSEEN], count=0, own_ns=left, gap_ns=0, ran_ns=0)] if left else []


def _work(timeline: Timeline, steps: Steps, rank: Rank, seen: pl.DataFrame) -> pl.DataFrame:
    """Return the operations of a GPU that count for some decode steps, each with the sums that it adds.

    Each operation adds to the busy time what reaches beyond all that had begun before it: what runs side by side
    counts once.
    """
    operations = on_gpu(timeline.operations, rank.gpu)
    starts, ends = begin_and_end(operations)
    low, high = begin_and_end(seen)
    reach = np.maximum.accumulate(ends)
    ended, idle = _ended(timeline, rank, low, high)
    within_reach, _ = every_position(np.searchsorted(reach, low, side="right"), np.searchsorted(starts, high))
    at = distinct(np.concatenate([within_reach, ended]))
    before = np.where(at > 0, reach[at - 1], starts[:1])
    starts, ends = starts[at], ends[at]
    owner, lengths, _ = within(np.maximum(starts, before), np.maximum(ends, before), low, high)
    own = _summed(owner, lengths, len(at))
    gaps = _summed(np.searchsorted(at, ended), idle, len(at))
    counted = held_by(starts, low, high) >= 0
    shown = np.flatnonzero(counted | (own > 0) | (gaps > 0))
    frame = operations[list(_TOLD_BY)][at[shown]]
    replays = timeline.replays[["graph", "start_ns"]].hstack([steps.roles])[frame["replay_index"]]
    return frame.with_columns_seq(
        replays["role"],
        replays["graph"],
        count=pl.Series(counted[shown].astype(np.int64)),
        own_ns=pl.Series(own[shown]),
        gap_ns=pl.Series(gaps[shown]),
        ran_ns=pl.Series((ends - starts)[shown] * counted[shown]),
        early_ns=pl.Series(_early(frame, starts[shown], ends[shown]) * counted[shown]),
        offset=pl.Series(starts[shown]) - replays["start_ns"],
        foreign=frame["process"] != rank.process,
    )


def _summed(owner: Ints, lengths: Ints, count: int) -> Ints:
    """Return the sum of lengths by owner; exact, since no sum reaches 2^53 ns."""
    return np.bincount(owner, weights=lengths, minlength=count).astype(np.int64)


def _ended(timeline: Timeline, rank: Rank, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return which operations of the GPU ended idle time inside replays in some windows, and how long that was."""
    pieces = on_gpu(timeline.pieces, rank.gpu)
    position, lengths, _ = within(*begin_and_end(pieces), low, high)
    inner = pieces["idle_class"].to_numpy()[position] == IdleClass.INTRA_GRAPH
    gap = pieces["gap_index"].to_numpy()[position[inner]]
    first = int(column_of(timeline.operations, "gpu").search_sorted(rank.gpu))
    return timeline.gaps["after_index"].to_numpy()[gap].astype(np.int64) - first, lengths[inner]


def _early(operations: pl.DataFrame, starts: Ints, ends: Ints) -> Ints:
    """Return how long each operation of a replay ran beside the one before it in its stream."""
    replay, streams = places(operations["replay_index"]), places(operations["stream"])
    order = np.lexsort((streams, replay))
    replay, streams, starts, ends = (column[order] for column in (replay, streams, starts, ends))
    same = (replay[1:] == replay[:-1]) & (streams[1:] == streams[:-1]) & (replay[1:] >= 0)
    early = np.zeros(len(starts), np.int64)
    early[order[1:]] = np.where(same, np.maximum(np.minimum(ends[:-1], ends[1:]) - starts[1:], 0), 0)
    return early


def _with_shapes(work: pl.DataFrame, shapes: pl.DataFrame | None) -> pl.DataFrame:
    if shapes is None:
        return work
    kernels = shapes.with_columns(kind=pl.lit(KERNEL, pl.UInt8))
    return work.join(kernels, on=["kind", "row"], how="left", maintain_order="left")


def _roles(work: pl.DataFrame, times: float, timeline: Timeline, texts: Numbers) -> list[RoleAccount]:
    """Return the roles by the time of their first replay, their nodes graph by graph in the order in which they run."""
    node = ("role", "graph", "graph_node", "kind", "name", "copy_kind")
    nodes = work.group_by(node, maintain_order=True).agg(
        _sums(times),
        pl.col("offset").mean(),
        *(pl.col(name).drop_nulls().first() for name in _SHAPE if name in work.columns),
    )
    replays = Counter(role for role, _, count in work[["role", "replay_index", "count"]].unique().iter_rows() if count)
    told = []
    for mine in nodes.partition_by("role", maintain_order=True):
        role = mine["role"][0]
        ordered = mine.sort("graph", "offset", nulls_last=True, maintain_order=True)
        told.append(
            RoleAccount(
                role=role,
                replays=round(replays[role] * times),
                names=[
                    texts[_called(kind, name, copy, timeline)]
                    for kind, name, copy in ordered[["kind", "name", "copy_kind"]].iter_rows()
                ],
                counts=ordered["count"].to_list(),
                shapes=_shapes(ordered),
                **{name: ordered[name].to_list() for name in _SUMS[1:]},
            )
        )
    return told


def _sums(times: float) -> pl.Expr:
    """Return the sums of a group, so many times as large as they were counted."""
    sums = pl.col(_SUMS).sum()
    return sums if times == 1 else (sums * times).round().cast(pl.Int64)


def _shapes(nodes: pl.DataFrame) -> Shapes | None:
    if _SHAPE[0] not in nodes.columns:
        return None
    return Shapes(
        grid=nodes["grid"].fill_null("").to_list(),
        block=nodes["block"].fill_null("").to_list(),
        **{name: nodes[name].to_list() for name in _SHAPE[2:]},
    )


def _eager(work: pl.DataFrame, times: float, timeline: Timeline, texts: Numbers) -> list[EagerAccount]:
    """Return the operations outside replays by name, the longest first."""
    shape = pl.format("grid {}, block {}", "grid", "block") if "grid" in work.columns else pl.lit(None, pl.String)
    rows = (
        work.group_by("kind", "name", "copy_kind", "foreign", maintain_order=True)
        .agg(_sums(times), shape=shape.drop_nulls().first())
        .sort("own_ns", "gap_ns", descending=True, maintain_order=True)
    )
    sums: dict[tuple[int, str | None], list[int]] = {}
    for number, row in enumerate(rows.iter_rows(named=True)):
        own = FOREIGN if row["foreign"] else _called(row["kind"], row["name"], row["copy_kind"], timeline)
        name = texts[own if number < MOST_EAGER else OTHERS]
        total = sums.setdefault((name, row["shape"] if number < MOST_EAGER else None), [0] * len(_SUMS[:4]))
        for place, column in enumerate(_SUMS[:4]):
            total[place] += row[column]
    return [
        EagerAccount(name=name, shape=shape, **dict(zip(_SUMS[:4], total, strict=True)))
        for (name, shape), total in sums.items()
    ]


def _called(kind: int, name: int | None, copy: int | None, timeline: Timeline) -> str:
    """Return what an operation is called: a kernel by its name, others by what they do."""
    if kind == KERNEL:
        return kernel_name(name, timeline.trace.names)
    if kind == GRAPH:
        return REPLAY
    copied = "unknown" if copy is None else COPY_KINDS.get(copy, "unknown")
    return "memset" if kind == MEMSET else f"{copied} copy"
