"""Where in the program and where in the step a wait happens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.launches import last_submission, next_submission, window_of
from bubblefinder.intervals import LONG_AGO
from bubblefinder.lookup import column_of, kept, nullable, places

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

SIZE_CLASSES: Final = (8, 64, 1024, 65_536, 1 << 20)
"""Upper limits of the byte size classes."""

_FRAMEWORK: Final = re.compile(
    r"^(?:_?Py|method_|cfunction_|slot_|vectorcall|THC?P|(?:void )?(?:at|c10|torch|std|pybind11)::|cuda?[A-Z]|__libc"
    r"|_start$|main$|clone|start_thread|0x|\[)|libcuda|libcudart|libtorch|libc10|libpython|/torch/",
)
_FROM_PYTHON: Final = re.compile(r"\b(?:THC?P[A-Z]\w+|dispatch_set_item|CUDAGraph::replay)\b")
"""What a Python program called of PyTorch: ``THPVariable_item`` is .item(), ``dispatch_set_item`` a write by index."""


def with_places(waits: pl.DataFrame, timeline: Timeline, steps: Steps, submitted: pl.DataFrame) -> pl.DataFrame:
    """Add size_class, nvtx, range_index, frame, after_role, before_role and window_index to the waits.

    `range_index` is a position in `timeline.ranges`. A wait belongs to the step of the work that
    its thread launched last before it, since the host may run a step or more ahead of the GPU.
    """
    position = timeline.ranges.innermost(waits["thread"].to_numpy(), waits["start_ns"].to_numpy())
    frames = frame_names(timeline, waits["call_index"])
    placed = waits.with_columns_seq(
        range_index=nullable(position),
        nvtx=timeline.ranges.rows["text"][nullable(position)],
        size_class=size_class(pl.col("bytes")),
        frame=pl.Series(frames, dtype=pl.String),
    )
    return _with_steps(_with_roles(placed, submitted), steps, submitted, timeline)


def size_class(size: pl.Expr) -> pl.Expr:
    """Return the upper limit of a size's class; the size itself above the last."""
    chosen = size
    for limit in reversed(SIZE_CLASSES):
        chosen = pl.when(size <= limit).then(limit).otherwise(chosen)
    return pl.when(size.is_not_null()).then(chosen)


def general(text: pl.Expr) -> pl.Expr:
    """Return a name without the numbers that change from step to step."""
    return text.str.replace_all(r"\d+", "#")


def by_name(texts: pl.Series, ns: pl.Series) -> list[tuple[str | None, float]]:
    """Return each text with the time it stands for, most first; those that differ in numbers only are one."""
    named = pl.DataFrame({"text": texts, "ns": ns}).group_by(place=general(pl.col("text")))
    told = named.agg(pl.col("text").first(), pl.col("ns").sum()).sort("ns", "place", descending=[True, False])
    return told[["text", "ns"]].rows()


def frame_chain(timeline: Timeline, call_index: int) -> tuple[str, ...]:
    """Return the call chain of a call, innermost first."""
    chain = column_of(timeline.calls, "callchain")[call_index]
    if chain is None:
        return ()
    return tuple(
        kept(timeline.trace.frames, timeline.trace.frames["callchain"] == chain).sort("depth")["symbol"].drop_nulls()
    )


def frame_names(timeline: Timeline, call_indices: pl.Series) -> list[str | None]:
    """Return of each call's chain the innermost frame that is neither CUDA's nor the framework's, see `_own_frame`."""
    chains = column_of(timeline.calls, "callchain")[call_indices]
    if not chains.count():
        return [None] * len(chains)
    known = timeline.trace.frames.filter(pl.col("callchain").is_in(chains.drop_nulls().unique().implode())).sort(
        "callchain", "depth"
    )
    named = {chain: _own_frame(symbols) for chain, symbols in known.group_by("callchain").agg("symbol").rows()}
    return [named.get(chain) for chain in chains]


def _own_frame(symbols: Iterable[str | None]) -> str | None:
    """Return the innermost frame of the program itself, else the framework's function that Python called."""
    known = [symbol for symbol in symbols if symbol]
    own = next((symbol for symbol in known if not _FRAMEWORK.search(symbol)), None)
    return own or next((found[0] for symbol in known if (found := _FROM_PYTHON.search(symbol))), None)


def nvtx_stack(timeline: Timeline, thread: int, time: int) -> tuple[str, ...]:
    """Return the ranges open on a thread at a time, outermost first."""
    levels = timeline.ranges.open_at(np.array([thread]), np.array([time]))
    return tuple(timeline.ranges.rows["text"][int(level[0])] for level in levels if level[0] >= 0)


def _with_roles(waits: pl.DataFrame, submitted: pl.DataFrame) -> pl.DataFrame:
    """Add the roles launched last before and first after each wait.

    At the edges of a capture a role is missing; it is taken from the other waits of the same kind.
    """
    roles = submitted["role"]
    known = roles.is_not_null()
    placed = waits.with_columns_seq(
        after_role=roles[last_submission(submitted, waits, known)],
        before_role=roles[next_submission(submitted, waits, known)],
    )
    alike = ["gpu", "launcher", "api", "copy_kind", "memory_kind", "size_class", general(pl.col("nvtx")), "frame"]
    for missing, other in (("before_role", "after_role"), ("after_role", "before_role")):
        if placed[missing].null_count():
            usual = pl.col(missing).drop_nulls().mode().sort().first().over([*alike, other])
            placed = placed.with_columns_seq(pl.coalesce(missing, usual))
    return placed


def _with_steps(waits: pl.DataFrame, steps: Steps, submitted: pl.DataFrame, timeline: Timeline) -> pl.DataFrame:
    """Add window_index: the step of a wait's own copy, else of the last work launched before the wait."""
    found = submitted["window_index"][last_submission(submitted, waits)]
    copy = places(waits["copy_index"])
    begun = np.append(timeline.operations["start_ns"].to_numpy(), LONG_AGO)[copy]
    own = window_of(steps, waits, begun)
    blocking = pl.when(~pl.col("synchronises")).then(own)
    return waits.with_columns(window_index=pl.coalesce(blocking, found))
