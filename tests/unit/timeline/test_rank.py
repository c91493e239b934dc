"""A rank is one process on one GPU, whatever else the GPU or the process does."""

from __future__ import annotations

import polars as pl

from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.rank import Rank, ranks_of
from bubblefinder.trace.sketch import Sketch, process_key
from tests.loops import Loop


def test_ranks_come_lowest_first_and_pick_their_own_rows() -> None:
    rows = pl.DataFrame({"gpu": [1, 0, 1, 0], "process": [7, 7, 5, 7], "row": [0, 1, 2, 3]})
    assert Rank.in_rows(rows) == [(0, 7), (1, 5), (1, 7)]
    assert rows.filter(Rank(0, 7).mine)["row"].to_list() == [1, 3]
    assert rows.filter(Rank(0, 5).mine).is_empty()


def test_a_capture_has_a_rank_a_process_on_each_gpu() -> None:
    sketch = Sketch()
    for pid, gpu in ((1001, 1), (1002, 0), (1003, 1)):
        Loop(sketch, pid=pid, gpu=gpu).step()
    ranks = ranks_of(build_timeline(sketch.trace()))
    assert [(rank.gpu, rank.pid) for rank in ranks] == [(0, 1002), (1, 1001), (1, 1003)]
    assert ranks[0].process == process_key(1002)
