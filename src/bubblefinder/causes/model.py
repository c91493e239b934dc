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
        waits: one row a wait, by start: call_index (in timeline.calls), thread, process, gpu, api,
            copy_index (operation of a blocking copy, null for synchronisations), copy_kind,
            memory_kind (String), bytes, size_class, nvtx (innermost range), frame, after_role,
            before_role, window_index (in steps.windows), drained (Boolean), bubble_ns (the chain
            charged to it; 0 unless drained), blocked_ns (time inside the call), site (Int64),
            group (Int64: sites of one NVTX range or seam).
        charges: the pieces charged: piece_index (in timeline.pieces), wait_index.
        sites: one row a site: site, group, and the columns its waits share.
    """

    waits: pl.DataFrame
    charges: pl.DataFrame
    sites: pl.DataFrame
