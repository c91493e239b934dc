"""What the launching threads did while the GPU idled between replays, and the calls they made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.places import general
from bubblefinder.intervals import Bools, Ints, begin_and_end, held_by, last_before, outermost, split
from bubblefinder.lookup import (
    NOWHERE,
    ByThread,
    Timetable,
    column_of,
    kept,
    nullable,
    numbered,
    on_gpu,
    positions,
    taken,
    where,
)
from bubblefinder.report.account import HOST_WORK, CallAccount, IdleAccount
from bubblefinder.report.detail.tables import class_name, labels
from bubblefinder.report.sentences import plain
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.model import IdleClass, Timeline
from bubblefinder.trace.model import COPY_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.causes.model import Causes
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.rank import Rank

MOST_IDLE: Final = 200
"""Rows of idle time kept apart; the rest, the shortest, are one row a class."""
MOST_CALLS: Final = 100
_NAME_LENGTH: Final = 200
_SIDES: Final = ("start_ns", "end_ns")
_KEY: Final = ("gap_class", "wait", "during", "place", "before")


def idle_of(
    timeline: Timeline, steps: Steps, causes: Causes, rank: Rank, starts: Ints, decode: Bools
) -> list[IdleAccount]:
    """Return the idle time outside replays in the decode steps of a rank, the longest first.

    Its windows begin at `starts`, and `decode` says which of them are decode steps.
    """
    first = int(column_of(timeline.pieces, "gpu").search_sorted(rank.gpu))
    pieces = on_gpu(timeline.pieces, rank.gpu).with_row_index("piece_index", first)
    pieces = kept(pieces, pieces["idle_class"] != int(IdleClass.INTRA_GRAPH))
    charges = _charges(causes, pieces)
    parts = _parts(timeline, pieces, np.concatenate([starts, *begin_and_end(charges)]))
    window = last_before(parts["start_ns"].to_numpy(), starts)
    parts = parts.hstack([pl.Series("window", window)]).pipe(where, pl.Series((window >= 0) & decode[window]))
    told = _told(timeline, steps, parts).with_columns(wait=_waits(causes, charges, parts))
    keys, number = numbered(told[list(_KEY)])
    cells, cell = np.unique(number * len(starts) + told["window"].to_numpy(), return_inverse=True)
    per_step = np.bincount(cell, told["ns"].to_numpy()).astype(np.int64)
    lengths = np.split(per_step, np.searchsorted(cells, np.arange(1, len(keys)) * len(starts)))
    rows = [_row(key, ns, int(decode.sum())) for key, ns in zip(keys, lengths, strict=False)]
    ordered = sorted(rows, key=lambda row: (-row.ns, *(getattr(row, name) or "" for name in _KEY)))
    return _longest(ordered, int(decode.sum()))


def _row(key: tuple[str | None, ...], lengths: Ints, steps: int) -> IdleAccount:
    gap_class, *rest = key
    spread = np.sort(np.append(lengths, np.zeros(max(steps - len(lengths), 0), np.int64)))
    middle = float(spread[(len(spread) - 1) // 2] + spread[len(spread) // 2]) / 2
    above = np.cumsum(np.maximum(spread[::-1] - middle, 0.0))
    return IdleAccount(
        gap_class=gap_class or "",
        **dict(zip(_KEY[1:], rest, strict=True)),
        ns=int(spread.sum()),
        steps=len(lengths),
        p50_ns=middle,
        half_steps=int(np.searchsorted(2 * above, above[-1])) + 1 if above[-1] else 0,
    )


def _longest(rows: list[IdleAccount], steps: int) -> list[IdleAccount]:
    """Keep the longest rows and add up the others by class."""
    rest: dict[str, int] = {}
    for row in rows[MOST_IDLE:]:
        rest[row.gap_class] = rest.get(row.gap_class, 0) + row.ns
    others = [_row((name, None, None, None, None), np.array([ns]), steps) for name, ns in rest.items()]
    return rows[:MOST_IDLE] + others


def _charges(causes: Causes, pieces: pl.DataFrame) -> pl.DataFrame:
    """Return what of some pieces, which lie together, is charged, by time."""
    if pieces.is_empty():
        return causes.charges.clear()
    first, last = pieces["piece_index"][0], pieces["piece_index"][-1]
    return causes.charges.pipe(where, pl.col("piece_index").is_between(first, last)).sort("start_ns")


def _parts(timeline: Timeline, pieces: pl.DataFrame, starts: Ints) -> pl.DataFrame:
    """Cut pieces at the times given and where their launching thread begins or ends a call or a range."""
    ended = timeline.gaps[["call_index", "after_index"]][pieces["gap_index"]]
    pieces = pieces.hstack([*ended, column_of(timeline.calls, "thread")[ended["call_index"]]])
    columns = ["piece_index", "idle_class", "call_index", "thread", "after_index"]
    cut = []
    for mine in pieces.partition_by("thread", maintain_order=True):
        begins, ends = begin_and_end(mine)
        edges = (starts, *_edges(timeline, mine["thread"][0]))
        cuts = np.concatenate([times[held_by(times, begins, ends) >= 0] for times in edges])
        lower, upper, owner = split(begins, ends, cuts)
        cut.append(mine[columns][owner].hstack([pl.Series("start_ns", lower), pl.Series("ns", upper - lower)]))
    return pl.concat(cut) if cut else pieces.select(*columns, "start_ns", ns="end_ns")


def _edges(timeline: Timeline, thread: int | None) -> list[Ints]:
    """Return when a thread began and ended its calls and ranges; nothing for an unknown one."""
    if thread is None:
        return []
    sources = (*_sources(timeline), timeline.ranges.by_thread)
    return [side for rows in sources for side in begin_and_end(rows.of(thread, *_SIDES))]


def _sources(timeline: Timeline) -> Iterator[ByThread]:
    """Yield the calls of CUDA, and those of the operating system if any were traced."""
    yield timeline.calls_of
    if len(timeline.trace.os_calls):
        yield ByThread(timeline.trace.os_calls)


def _told(timeline: Timeline, steps: Steps, parts: pl.DataFrame) -> pl.DataFrame:
    """Add to each part its class in words, and what the host did and where."""
    late = parts["idle_class"] == int(IdleClass.HOST_LATE)
    launching = parts["idle_class"] == int(IdleClass.LAUNCHING)
    known = parts["thread"].is_not_null()
    called = timeline.calls["api"][parts["call_index"]]
    during = pl.when(launching).then(called).when(late & known).then(_during(timeline, parts))
    thread = parts["thread"] if known.all() else parts["thread"].fill_null(NOWHERE)
    inside = timeline.ranges.innermost(thread.to_numpy(), parts["start_ns"].to_numpy())
    classes = {int(idle_class): class_name(int(idle_class)) for idle_class in IdleClass}
    return parts.select_seq(
        "window",
        "ns",
        gap_class=pl.col("idle_class").replace_strict(classes, return_dtype=pl.Enum(list(classes.values()))),
        during=during,
        place=pl.when(late | launching).then(_places(timeline, inside)),
        before=labels(timeline, steps, parts["after_index"]),
    )


def _during(timeline: Timeline, parts: pl.DataFrame) -> pl.Series:
    """Return the call that each part's thread sat in: of CUDA, else of the operating system, else none."""
    sat = [_outermost(rows, name, parts) for rows, name in zip(_sources(timeline), ("api", "name"), strict=False)]
    return pl.select(pl.coalesce(*sat, pl.lit(HOST_WORK, pl.Categorical))).to_series()


def _outermost(rows: ByThread, name: str, parts: pl.DataFrame) -> pl.Series:
    """Return the name of the outermost row of each part's thread that was open when the part began."""
    times = parts["start_ns"].sort().to_numpy()
    threads = parts["thread"].drop_nulls().unique().sort()
    mine = [_open_at(rows.of(thread, "thread", *_SIDES, name), times) for thread in threads]
    ordered = pl.concat([rows.of(None, "thread", *_SIDES, name), *mine], rechunk=True)
    outer = kept(ordered, outermost(ordered["thread"].to_numpy(), *begin_and_end(ordered)))
    times = parts["start_ns"].to_numpy()
    held = Timetable.of(outer, ("thread",), "start_ns").holding(parts, times, outer["end_ns"].to_numpy())
    return outer[name].cast(pl.Categorical)[nullable(held)]


def _open_at(rows: pl.DataFrame, times: Ints) -> pl.DataFrame:
    """Return the rows that are open at any of sorted times."""
    starts, ends = begin_and_end(rows)
    return kept(rows, last_before(ends - 1, times) > last_before(starts - 1, times))


def _waits(causes: Causes, charges: pl.DataFrame, parts: pl.DataFrame) -> pl.Series:
    """Return the wait that each part of a piece of one GPU is charged to, in words."""
    if charges.is_empty():
        return pl.Series([None] * len(parts), dtype=pl.Categorical)
    told = taken(causes.waits[["api", "copy_kind", "nvtx"]], charges["wait_index"].cast(pl.UInt32))
    kinds, kind = numbered(told)
    different = pl.DataFrame(kinds, schema=told.schema, orient="row")
    named = different.select(name=wait_name(general(pl.col("nvtx"))).cast(pl.Categorical))["name"][kind]
    charge = held_by(parts["start_ns"].to_numpy(), *begin_and_end(charges))
    mine = charges["piece_index"].to_numpy()[charge] == parts["piece_index"].to_numpy()
    return named[nullable(np.where(mine, charge, NOWHERE))]


def wait_name(place: pl.Expr) -> pl.Expr:
    """Return what a wait is called: its API, the direction of its copy, and the range it is in."""
    copied = pl.when(pl.col("copy_kind").is_not_null()).then(pl.format(" {}", "copy_kind")).otherwise(pl.lit(""))
    within = pl.when(place.is_not_null()).then(pl.format(" in {}", place)).otherwise(pl.lit(""))
    return pl.concat_str(pl.col("api").cast(pl.String), copied, within)


def calls_of(timeline: Timeline, steps: Steps, rank: Rank, span: tuple[int, int]) -> list[CallAccount]:
    """Return the calls that a rank's launching threads made between two times, by what they do, the longest first."""
    called = on_gpu(timeline.leads, rank.gpu)["call_index"]
    process, thread = (column_of(timeline.calls, name)[called] for name in ("process", "thread"))
    made = {one: _made_by(timeline, one, span) for one in thread.filter(process == rank.process).unique()}
    if not made:
        return []
    rows = pl.concat([_summed(_calls(timeline, steps, rank, made)), _summed(_between(timeline, made))])
    longest = rows.sort("ns", "api", "on", descending=[True, False, False]).head(MOST_CALLS)
    return [CallAccount(**row) for row in longest.iter_rows(named=True)]


def _made_by(timeline: Timeline, thread: int, span: tuple[int, int]) -> pl.DataFrame:
    """Return the calls that a thread made between two times, with their positions."""
    rows = timeline.calls_of
    mine = rows.of(thread, *_SIDES, "api", "role").hstack([rows.at(thread).rename("call_index")])
    first, last = mine["start_ns"].to_numpy().searchsorted(span)
    return mine[int(first) : int(last)]


def _calls(timeline: Timeline, steps: Steps, rank: Rank, made: dict[int, pl.DataFrame]) -> pl.DataFrame:
    """Return api, `on`, whether it waits and ns of each call that threads made."""
    firsts = _first_operations(timeline, steps, rank)
    calls = pl.concat(made.values())
    launched = positions(firsts["call_index"].to_numpy(), calls["call_index"].to_numpy(), len(timeline.calls))
    return calls.hstack(taken(firsts[["on", "blocking"]], launched)).select_seq(
        "api",
        "on",
        waits=(pl.col("role") == CallRole.WAIT) | pl.col("blocking").fill_null(value=False),
        ns=pl.col("end_ns") - pl.col("start_ns"),
    )


def _summed(calls: pl.DataFrame) -> pl.DataFrame:
    """Return how many calls do the same, and how long they take."""
    sums = calls.group_by("api", "on", "waits").agg(count=pl.len(), p50_ns=pl.col("ns").median(), ns=pl.col("ns").sum())
    return sums.with_columns_seq(pl.col("api").cast(pl.String).fill_null("unnamed"), pl.col("on").cast(pl.String))


def _first_operations(timeline: Timeline, steps: Steps, rank: Rank) -> pl.DataFrame:
    """Return call_index, blocking and `on`, what it replays or in which direction it copies, of a rank's launches."""
    leads = on_gpu(timeline.leads, rank.gpu)
    firsts = timeline.operations[["process", "copy_kind", "replay_index", "blocking"]][leads["op_index"]]
    firsts = firsts.with_columns(leads["call_index"]).pipe(where, pl.col("process") == rank.process)
    roles = steps.replays["role"].cast(pl.Categorical)[firsts["replay_index"]]
    directions = pl.Series([COPY_KINDS.get(kind) for kind in range(1 << 7)], dtype=pl.Categorical)
    copied = directions[firsts["copy_kind"].cast(pl.UInt32, strict=False)]
    return firsts.select_seq("call_index", "blocking", on=roles.zip_with(roles.is_not_null(), copied))


def _between(timeline: Timeline, made: dict[int, pl.DataFrame]) -> pl.DataFrame:
    """Return the work of each thread between its calls, cut where a range begins or ends, in the columns of a call."""
    cut = [pl.DataFrame(schema={"on": pl.Categorical, "ns": pl.Int64})]
    for thread, mine in made.items():
        starts, ends = begin_and_end(mine)
        ended = np.maximum.accumulate(ends)[:-1]
        cuts = np.concatenate(begin_and_end(timeline.ranges.by_thread.of(thread, *_SIDES)))
        lower, upper, _ = split(ended, np.maximum(starts[1:], ended), cuts)
        inside = timeline.ranges.innermost(np.full(len(lower), thread), lower)
        cut.append(pl.DataFrame({"on": _places(timeline, inside), "ns": upper - lower}))
    return pl.concat(cut).with_columns_seq(api=pl.lit(HOST_WORK), waits=pl.lit(value=False))


def _places(timeline: Timeline, inside: Ints) -> pl.Series:
    """Return what ranges are called by their positions, null for -1, without the numbers in their names."""
    if not len(inside):  # of none nothing is replaced, not even the type
        return pl.Series(dtype=pl.Categorical)
    texts = timeline.ranges.names[nullable(inside)]
    different = texts.unique()
    words = different.cast(pl.String).to_frame().select(general(pl.col("text")))["text"]
    short = pl.Series([None if text is None else plain(text, _NAME_LENGTH) for text in words], dtype=pl.Categorical)
    return texts.to_physical().replace_strict(different.to_physical(), short)
