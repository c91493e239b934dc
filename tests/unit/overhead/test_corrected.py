"""The corrected ledger of any capture, whatever the costs: it sums, and nothing in it is below zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.overhead.corrected import RankLedger, correct_lane, role_medians, shares_of
from bubblefinder.overhead.device import work_of
from bubblefinder.overhead.host import host_of
from bubblefinder.overhead.model import Cost, Costs, Shares
from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.ledger import window_ledger
from tests.captures import captures
from tests.unit.overhead.taxed import sums

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.trace.model import Trace

MS = 1_000_000


def lanes(trace: Trace, cuts: list[int]) -> Iterator[RankLedger]:
    """Every GPU of a capture, cut into windows at starts of operations."""
    timeline = build_timeline(trace)
    for device in timeline.devices:
        mine = pl.col("gpu") == device.gpu
        begun = timeline.operations.filter(mine & pl.col("start_ns").is_between(device.start_ns, device.end_ns))
        starts = begun["start_ns"].to_list()
        edges = np.unique([device.start_ns, *(starts[cut % len(starts)] for cut in cuts), device.end_ns])
        ledger = window_ledger(timeline, device.gpu, edges[:-1], edges[1:])
        windows = pl.DataFrame({"index": range(len(edges) - 1), "start_ns": edges[:-1], "end_ns": edges[1:]})
        rows = windows.with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns")).hstack(ledger)
        replays = timeline.replays.filter(mine).with_columns(role=pl.lit("decode"), position=pl.lit(0))
        yield RankLedger(device.gpu, rows, replays, work_of(timeline, device.gpu), host_of(timeline, device.gpu))


def every_cost(ns: float, gap_share: float) -> Costs:
    one = Cost(ns, ns, ns)
    return Costs(
        kernel_node=one,
        branch_node=one,
        memset_node=one,
        copy_node=one,
        replay=one,
        eager_operation=one,
        kernel_call=one,
        copy_call=one,
        other_call=one,
        gap_share=Cost(gap_share, gap_share, gap_share),
        launch_call=Cost(0, 0, 0),
        launch_node=Cost(0, 0, 0),
    )


@given(captures(), st.lists(st.integers(0, 80), max_size=4), st.floats(0, 8), st.floats(0, 1), st.floats(-2, 2))
def test_it_sums_whatever_the_costs(trace: Trace, cuts: list[int], ns: float, gap_share: float, factor: float) -> None:
    for lane in lanes(trace, cuts):
        assert sums(correct_lane(lane, every_cost(ns, gap_share), factor).rows)


@given(captures(), st.lists(st.integers(0, 80), max_size=4))
def test_without_costs_it_is_the_recorded_one(trace: Trace, cuts: list[int]) -> None:
    for lane in lanes(trace, cuts):
        unchanged = correct_lane(lane, Costs()).rows
        if not lane.rows["profiler_ns"].sum():
            assert unchanged.equals(lane.rows.select(unchanged.columns))


def ledger(**parts: int | None) -> pl.DataFrame:
    names = ("busy", "intra_graph", "host_late", "launching", "queued", "unattributed", "unrecorded", "profiler")
    columns = {f"{name}_ns": [parts.get(name, 0)] for name in names}
    total = sum(value or 0 for value in parts.values())
    return pl.DataFrame({"duration_ns": [total], **columns}, schema_overrides={"intra_graph_ns": pl.Int64})


def test_shares_leave_the_unmeasured_out() -> None:
    whole = shares_of(ledger(busy=6 * MS, intra_graph=3 * MS, queued=MS), has_replays=True)
    assert (whole.intra_graph, whole.inter_graph) == (0.3, 0.1)
    assert whole.total == pytest.approx(0.4)
    graph = shares_of(ledger(busy=9 * MS, intra_graph=None, host_late=MS), has_replays=True)
    assert graph == Shares(intra_graph=None, inter_graph=0.1, total=None)
    eager = shares_of(ledger(busy=9 * MS, intra_graph=None, host_late=MS), has_replays=False)
    assert eager == Shares(intra_graph=None, inter_graph=0.1, total=0.1)
    assert shares_of(ledger(), has_replays=True) == Shares()


def test_roles_come_in_the_order_of_their_place() -> None:
    replays = pl.DataFrame({"role": ["verify", "draft", "verify"], "position": [1, 0, 1]})
    medians = role_medians(replays, np.array([10.0, 4.0, 20.0]))
    assert list(medians.items()) == [("draft", 4), ("verify", 15)]
