"""Who is to blame: waits and pauses, the idle they are charged with, and the sites that waits belong to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import polars as pl

from bubblefinder.causes.places import general
from bubblefinder.lookup import numbered

_ALIKE: Final = (
    "api", "copy_kind", "memory_kind", "size_class", "frame", "after_role", "before_role", "order",
)  # fmt: skip


@dataclass(frozen=True)
class Causes:
    """Every wait of a launching thread, judged, and every idle piece charged at most once.

    Attributes:
        waits: one row a wait and GPU, by start: call_index (in timeline.calls), thread (that waits),
            launcher (the launching thread it holds up, nearly always the same), process, gpu, api,
            start_ns, end_ns, blocked_ns (time inside the call), copy_index (operation that a blocking
            copy or a synchronous launch submitted, or the copy that a synchronisation waits for, null
            where none is known), synchronises (False for calls that wait for what they submit), awaits
            (False for a driver call that is busy with itself, such as cudaHostAlloc), awaited_stream,
            recorded_ns (when the event was recorded that it waits for, null for none), copy_kind,
            memory_kind (String), bytes, size_class, nvtx (innermost range), range_index, frame,
            after_role, before_role, window_index (in steps.windows), drained (Boolean: it is charged
            with idle), bubble_ns (how much), joined (a synchronisation that only ends the wait before it: it shares
            that one's site and isn't counted by itself), order (among waits of one kind in a seam),
            site (Int64), group (Int64: sites of one NVTX range or seam).
        pauses: what held a launching thread up outside CUDA calls; see `causes.pauses.find_pauses`.
        charges: the idle charged to waits and pauses; see `causes.charges.find_charges`.
        sites: one row a site, by number: site, group, the columns its waits share, and drained
            (whether any of its waits was).
        submitted: every call that put work on a GPU, GPU by GPU, in the order of each thread, with its role and
            step; see `causes.launches.find_submissions`.
    """

    waits: pl.DataFrame
    pauses: pl.DataFrame
    charges: pl.DataFrame
    sites: pl.DataFrame
    submitted: pl.DataFrame

    @cached_property
    def on_every_rank(self) -> dict[int, frozenset[int]]:
        """Each site, and the same of other ranks."""
        _, kind = numbered(self.sites.select_seq(*_ALIKE, place=general(pl.col("nvtx"))))
        alike: dict[int, set[int]] = {}
        for site, number in zip(self.sites["site"], kind.tolist(), strict=True):
            alike.setdefault(number, set()).add(site)
        return {site: frozenset(sites) for sites in alike.values() for site in sites}

    @cached_property
    def copying(self) -> frozenset[int]:
        """The sites of calls that wait for what they submit."""
        return frozenset(self.waits["site"].filter(~self.waits["synchronises"]).unique())
