"""Who is to blame: waits, the chains of gaps they opened, and the sites they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Causes:
    """Every wait of a launching thread, judged, and every idle piece charged at most once.

    Attributes:
        waits: one row a wait and GPU, by start: call_index (in timeline.calls), thread (that waits),
            launcher (the launching thread it holds up, nearly always the same), process, gpu, api,
            start_ns, end_ns, blocked_ns (time inside the call), copy_index (operation of a blocking
            copy, or of the copy that a synchronisation waits for, null where none is known),
            synchronises (False for a blocking copy), copy_kind, memory_kind (String), bytes,
            size_class, nvtx (innermost range), range_index, frame, after_role, before_role,
            window_index (in steps.windows), drained (Boolean), bubble_ns (the chain charged to it; 0
            unless drained), joined (a synchronisation that only ends the wait before it: it shares
            that one's site and isn't counted by itself), order (among waits of one kind in a seam),
            site (Int64), group (Int64: sites of one NVTX range or seam).
        charges: the pieces charged: piece_index (in timeline.pieces), wait_index, opened (the piece
            belongs to the gap that opened under the wait, not to a later one of its chain).
        sites: one row a site, by number: site, group, the columns its waits share, bytes (largest)
            and drained (whether any of its waits was).
        submitted: every call that put work on a GPU, in the order of each thread, with its role and
            step; see `causes.launches.find_submissions`.
    """

    waits: pl.DataFrame
    charges: pl.DataFrame
    sites: pl.DataFrame
    submitted: pl.DataFrame
