from __future__ import annotations

import polars as pl
import pytest

from bubblefinder.timeline.model import LEDGER_CLASSES
from bubblefinder.timeline.shares import UNKNOWN, BubbleShare, bubble_share

MS = 1_000_000


def ledger(**parts: int | None) -> pl.DataFrame:
    columns = {f"{name}_ns": [parts.get(name, 0)] for name in LEDGER_CLASSES}
    total = sum(value or 0 for value in parts.values())
    return pl.DataFrame({"duration_ns": [total], **columns}, schema_overrides={"intra_graph_ns": pl.Int64})


def test_shares_leave_the_unmeasured_out() -> None:
    whole = bubble_share(ledger(busy=6 * MS, intra_graph=3 * MS, queued=MS), has_replays=True)
    assert (whole.intra_graph, whole.inter_graph) == (0.3, 0.1)
    assert whole.total == pytest.approx(0.4)
    graph = bubble_share(ledger(busy=9 * MS, intra_graph=None, host_late=MS), has_replays=True)
    assert graph == BubbleShare(intra_graph=None, inter_graph=0.1, total=None)
    eager = bubble_share(ledger(busy=9 * MS, intra_graph=None, host_late=MS), has_replays=False)
    assert eager == BubbleShare(intra_graph=None, inter_graph=0.1, total=0.1)
    assert bubble_share(ledger(), has_replays=True) == UNKNOWN
