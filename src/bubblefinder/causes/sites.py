"""Waits that are one and the same line of a program: sites, and the groups that one cure removes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.launches import last_submission
from bubblefinder.causes.places import general
from bubblefinder.intervals import NEVER, begin_and_end
from bubblefinder.lookup import NOWHERE, Timetable, kept, numbered, places, taken

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.timeline.model import Timeline

MOST_ALIKE: Final = 4
"""Waits of one kind in one seam are told apart by their order, up to so many of them."""

_SITE: Final = (
    "gpu", "process", "launcher", "thread", "api", "copy_kind", "memory_kind", "size_class", "place", "frame",
    "after_role", "before_role", "order",
)  # fmt: skip
_GROUP: Final = ("gpu", "process", "thread", "where", "api", "copy_kind")
_SHARED: Final = (
    "group", "gpu", "process", "launcher", "thread", "api", "copy_kind", "memory_kind", "size_class", "nvtx", "frame",
    "after_role", "before_role", "order",
)  # fmt: skip


def with_sites(waits: pl.DataFrame, timeline: Timeline, submitted: pl.DataFrame) -> pl.DataFrame:
    """Add joined, order, site and group to the placed and judged waits.

    `joined` marks a synchronisation that only ends what the wait before it began (``.cpu()`` is a
    copy and a synchronisation): it shares that wait's site and isn't counted by itself.
    """
    place = waits.select(place=general(pl.col("nvtx"))).to_series()
    joined, seam = _joined(waits, submitted), _seams(waits, submitted).rename("seam")
    told = waits.hstack([place, seam])
    heads = kept(told, ~joined)
    kind = [name for name in _SITE if name != "order"]
    earlier = pl.int_range(pl.len()).over(*kind, "seam", "window_index")  # of which each step has one
    order = heads.select_seq(order=earlier.clip(upper_bound=MOST_ALIKE - 1)).to_series()
    heads = heads.hstack([order, _group_place(heads, timeline, submitted)])
    site, group = (numbered(heads[list(key)])[1] for key in (_SITE, _GROUP))
    found = pl.DataFrame({"order": order, "site": site, "group": group})
    return waits.hstack([joined, *taken(found, _last_head(waits, joined.to_numpy()))])


def _last_head(waits: pl.DataFrame, joined: Bools) -> Ints:
    """Return for each wait the number of the last one of its threads and GPU that isn't joined, up to itself."""
    threads = numbered(waits[["gpu", "launcher", "thread"]])[1]
    order = np.argsort(threads, kind="stable")
    last = np.maximum.accumulate(np.where(joined[order], NOWHERE, np.arange(len(order))))
    same = (last != NOWHERE) & (threads[order[last]] == threads[order])
    found = np.empty(len(order), np.int64)
    found[order] = np.where(same, (np.cumsum(~joined) - 1)[order[last]], NOWHERE)
    return found


def sites_of(waits: pl.DataFrame) -> pl.DataFrame:
    """Return one row a site with the columns its waits share, by number."""
    return (
        kept(waits, ~waits["joined"])
        .group_by("site")
        .agg(*(pl.col(name).first() for name in _SHARED), drained=pl.col("drained").any())
        .sort("site")
    )


def _joined(waits: pl.DataFrame, submitted: pl.DataFrame) -> pl.Series:
    """Tell the synchronisations that follow a wait to blame or a blocking copy with nothing submitted in between."""
    own = ["gpu", "launcher", "thread"]
    issued = last_submission(submitted, waits.with_columns(launcher="thread"))
    latest = waits.with_columns(issued_ns=submitted["start_ns"][issued])
    follows = pl.col("synchronises") & ~pl.col("drained")
    nothing = (pl.col("issued_ns") < pl.col("end_ns").shift(1).over(own)).fill_null(value=False)
    leads = ~pl.col("synchronises") | pl.col("drained")
    root = pl.when(~follows | ~nothing).then(leads)
    return latest.select_seq(
        joined=(follows & nothing & root.forward_fill().over(own)).fill_null(value=False)
    ).to_series()


def _seams(waits: pl.DataFrame, submitted: pl.DataFrame) -> pl.Series:
    """Return the number of the last replay or eager phase that the launcher started before each wait."""
    return submitted["phase"][last_submission(submitted, waits, submitted["role"].is_not_null())]


def _group_place(heads: pl.DataFrame, timeline: Timeline, submitted: pl.DataFrame) -> pl.Series:
    """Return what waits of one group share: an NVTX range that launches no phase of the step, else the seam."""
    place = places(heads["range_index"])
    used = np.unique(place[place != NOWHERE])
    wide = np.zeros(len(timeline.ranges.rows) + 1, np.bool_)
    if len(used):
        ranges = taken(timeline.ranges.rows[["thread", "start_ns", "end_ns"]], used)
        launched = kept(submitted[["thread", "start_ns"]], submitted["role"].is_not_null()).sort("thread", "start_ns")
        starts, ends = begin_and_end(ranges)
        first = Timetable.of(launched, ("thread",), "start_ns").first(ranges, starts)
        wide[used] = np.append(launched["start_ns"].to_numpy(), NEVER)[first] < ends
    narrow = pl.col("place").is_not_null() & pl.Series(~wide[place])
    seam = pl.format("{} > {}", pl.col("after_role").fill_null(""), pl.col("before_role").fill_null(""))
    return heads.select(where=pl.when(narrow).then(pl.format("[{}]", "place")).otherwise(seam)).to_series()
