"""The account of the decode steps of each rank: busy time by node, idle time by what the host did meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import split
from bubblefinder.report.account import Account, EagerAccount, RoleAccount, Shapes
from bubblefinder.report.detail.host_account import calls_of, idle_of
from bubblefinder.report.detail.kernels import kernel_name
from bubblefinder.timeline.model import CaptureMode, IdleClass, on_gpu
from bubblefinder.timeline.rank import Rank
from bubblefinder.trace.model import COPY_KINDS, GRAPH, KERNEL, MEMSET, pid_of

if TYPE_CHECKING:
    from bubblefinder.causes.model import Causes
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

MOST_EAGER: Final = 400
"""Names outside replays that are kept apart; the rest, the shortest, are one row."""
REPLAY: Final = "replay"
OTHERS: Final = "other work"
FOREIGN: Final = "work of another process"
_SHAPE: Final = ("grid", "block", "registers", "shared_bytes", "local_bytes")
_SUMS: Final = ("count", "own_ns", "gap_ns", "ran_ns", "early_ns")


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a rank, which tile its GPU's span, and which of them are decode steps."""

    starts: Ints
    decode: np.ndarray

    def of(self, times: Ints) -> Ints:
        """Return the number of the decode step at each time, -1 outside them."""
        window = np.searchsorted(self.starts, times, side="right") - 1
        return np.where((window >= 0) & self.decode[window], window, -1)


def accounts(
    timeline: Timeline, steps: Steps, causes: Causes | None, shapes: pl.DataFrame | None = None
) -> list[Account]:
    """Return the account of every rank with decode steps, lowest GPU first.

    Args:
        timeline: the timeline.
        steps: its steps.
        causes: its waits; without them no idle time is charged to one.
        shapes: `row`, a KERNEL table's row, and how it was launched; see `trace.shapes`.
    """
    if timeline.mode is CaptureMode.UNSEEN:
        return []
    decode = steps.windows.filter(pl.col("excluded").is_null()).select("gpu", "process").unique().sort("gpu", "process")
    return [_account(timeline, steps, causes, Rank(gpu, process), shapes) for gpu, process in decode.iter_rows()]


def _account(
    timeline: Timeline, steps: Steps, causes: Causes | None, lane: Rank, shapes: pl.DataFrame | None
) -> Account:
    mine = steps.windows.filter((pl.col("gpu") == lane.gpu) & (pl.col("process") == lane.process))
    windows = Windows(mine["start_ns"].to_numpy(), mine["excluded"].is_null().to_numpy())
    chosen = mine.filter(pl.col("excluded").is_null())
    work = _with_shapes(_work(timeline, steps, lane, windows), shapes)
    texts = _Texts()
    return Account(
        gpu=lane.gpu,
        pid=pid_of(lane.process),
        steps=len(chosen),
        duration_ns=int((chosen["end_ns"] - chosen["start_ns"]).sum()),
        roles=_roles(work.filter(pl.col("replay_index").is_not_null()), timeline, texts),
        eager=_eager(work.filter(pl.col("replay_index").is_null()), timeline, texts),
        idle=idle_of(timeline, steps, causes, lane, windows.starts, windows.decode),
        calls=calls_of(timeline, steps, lane, (int(chosen["start_ns"][0]), int(chosen["end_ns"][-1]))),
        names=texts.texts,
    )


def _work(timeline: Timeline, steps: Steps, lane: Rank, windows: Windows) -> pl.DataFrame:
    """Return the operations of a GPU that count for its decode steps, each with the sums that it adds.

    Each operation adds to the busy time what reaches beyond all that had begun before it: what runs side by side
    counts once.
    """
    operations = on_gpu(timeline.operations, lane.gpu)
    starts, ends = operations["start_ns"].to_numpy(), operations["end_ns"].to_numpy()
    before = np.concatenate((starts[:1], np.maximum.accumulate(ends)[:-1]))
    lower, upper, owner = split(np.maximum(starts, before), np.maximum(ends, before), windows.starts)
    counted = (windows.of(starts) >= 0).astype(np.int64)
    frame = operations.select("kind", "row", "process", "stream", "graph_node", "name", "copy_kind", "replay_index")
    replays = timeline.replays.select("graph").hstack(steps.replays.select("role"))
    return frame.with_columns(
        replays.select(pl.all().gather(frame["replay_index"])),
        count=pl.Series(counted),
        own_ns=pl.Series(_summed(owner, upper - lower, windows.of(lower), len(frame))),
        gap_ns=pl.Series(_ended(timeline, lane, windows, len(frame))),
        ran_ns=pl.Series(counted * (ends - starts)),
        early_ns=pl.Series(counted * _early(frame, starts, ends)),
        offset=pl.Series(starts) - timeline.replays["start_ns"].gather(frame["replay_index"]),
        foreign=pl.col("process") != lane.process,
    ).filter(pl.any_horizontal(pl.col("count", "own_ns", "gap_ns") > 0))


def _summed(owner: Ints, lengths: Ints, windows: Ints, count: int) -> Ints:
    inside = windows >= 0
    sums = np.zeros(count, np.int64)
    np.add.at(sums, owner[inside], lengths[inside])
    return sums


def _ended(timeline: Timeline, lane: Rank, windows: Windows, count: int) -> Ints:
    """Return the idle time inside replays that each operation of the GPU ended."""
    pieces = on_gpu(timeline.pieces, lane.gpu).filter(pl.col("idle_class") == IdleClass.INTRA_GRAPH)
    lower, upper, owner = split(pieces["start_ns"].to_numpy(), pieces["end_ns"].to_numpy(), windows.starts)
    first = int(timeline.operations["gpu"].search_sorted(lane.gpu))
    after = timeline.gaps["after_index"].gather(pieces["gap_index"]).cast(pl.Int64).to_numpy() - first
    return _summed(after[owner], upper - lower, windows.of(lower), count)


def _early(frame: pl.DataFrame, starts: Ints, ends: Ints) -> Ints:
    """Return how long each operation of a replay ran beside the one before it in its stream."""
    rows = frame.select("stream", "replay_index").with_columns(
        start=pl.Series(starts), end=pl.Series(ends), previous=pl.Series(ends)
    )
    previous = pl.col("previous").shift(1).over("stream", "replay_index")
    early = (pl.min_horizontal(previous, "end") - pl.col("start")).clip(lower_bound=0)
    told = pl.col("replay_index").is_not_null() & previous.is_not_null()
    return rows.select(early=pl.when(told).then(early).otherwise(0))["early"].to_numpy()


def _with_shapes(work: pl.DataFrame, shapes: pl.DataFrame | None) -> pl.DataFrame:
    if shapes is None:
        return work
    kernels = shapes.with_columns(kind=pl.lit(KERNEL, pl.UInt8))
    return work.join(kernels, on=["kind", "row"], how="left", maintain_order="left")


def _roles(work: pl.DataFrame, timeline: Timeline, texts: _Texts) -> list[RoleAccount]:
    """Return the roles by the time of their first replay, their nodes graph by graph in the order in which they run."""
    nodes = work.group_by("role", "graph", "graph_node", "kind", "name", "copy_kind", maintain_order=True).agg(
        pl.col(_SUMS).sum(),
        pl.col("offset").mean(),
        pl.col("replay_index").filter(pl.col("count") > 0).alias("replayed"),
        *(pl.col(name).drop_nulls().first() for name in _SHAPE if name in work.columns),
    )
    told = []
    for (role,), mine in nodes.partition_by("role", as_dict=True, maintain_order=True).items():
        ordered = mine.sort("graph", "offset", nulls_last=True, maintain_order=True)
        told.append(
            RoleAccount(
                role=role,
                replays=ordered["replayed"].explode().n_unique() if ordered["count"].sum() else 0,
                names=[texts.of(row, timeline) for row in ordered.iter_rows(named=True)],
                counts=ordered["count"].to_list(),
                shapes=_shapes(ordered),
                **{name: ordered[name].to_list() for name in _SUMS[1:]},
            )
        )
    return told


def _shapes(nodes: pl.DataFrame) -> Shapes | None:
    if _SHAPE[0] not in nodes.columns:
        return None
    return Shapes(
        grid=nodes["grid"].fill_null("").to_list(),
        block=nodes["block"].fill_null("").to_list(),
        **{name: nodes[name].to_list() for name in _SHAPE[2:]},
    )


def _eager(work: pl.DataFrame, timeline: Timeline, texts: _Texts) -> list[EagerAccount]:
    """Return the operations outside replays by name, the longest first."""
    shape = pl.format("grid {}, block {}", "grid", "block") if "grid" in work.columns else pl.lit(None, pl.String)
    rows = (
        work.group_by("kind", "name", "copy_kind", "foreign", maintain_order=True)
        .agg(pl.col(_SUMS).sum(), shape=shape.drop_nulls().first())
        .sort("own_ns", "gap_ns", descending=True, maintain_order=True)
    )
    sums: dict[tuple[int, str | None], list[int]] = {}
    for number, row in enumerate(rows.iter_rows(named=True)):
        name = texts.of(row, timeline) if number < MOST_EAGER else texts.position(OTHERS)
        total = sums.setdefault((name, row["shape"] if number < MOST_EAGER else None), [0] * len(_SUMS[:4]))
        for place, column in enumerate(_SUMS[:4]):
            total[place] += row[column]
    return [
        EagerAccount(name=name, shape=shape, **dict(zip(_SUMS[:4], total, strict=True)))
        for (name, shape), total in sums.items()
    ]


class _Texts:
    """Names by position, each kept once."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    @property
    def texts(self) -> list[str]:
        return list(self._known)

    def position(self, text: str) -> int:
        return self._known.setdefault(text, len(self._known))

    def of(self, row: dict[str, object], timeline: Timeline) -> int:
        """Return the position of what an operation is called: a kernel by its name, others by what they do."""
        kind, name, copy = row["kind"], row["name"], row["copy_kind"]
        if row.get("foreign"):
            return self.position(FOREIGN)
        if kind == KERNEL:
            return self.position(kernel_name(name if isinstance(name, int) else None, timeline.trace.names))
        if kind == GRAPH:
            return self.position(REPLAY)
        copied = COPY_KINDS.get(copy, "unknown") if isinstance(copy, int) else "unknown"
        return self.position("memset" if kind == MEMSET else f"{copied} copy")
