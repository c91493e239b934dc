"""Recurring gaps, gap lengths, leads and idle spans against the timeline they come from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

from bubblefinder.report.detail import tables
from bubblefinder.report.detail.windows import inside
from bubblefinder.timeline.model import IdleClass
from bubblefinder.trace.model import MEMCPY
from tests.unit.report.detail.analysed import Analysed, loop

if TYPE_CHECKING:
    from bubblefinder.report.charts import GapRow


def recurring(one: Analysed) -> list[GapRow]:
    pieces = tables.idle_pieces(one.timeline, one.decode, one.rank)
    return tables.gap_rows(one.timeline, one.steps, pieces, len(one.decode))


@pytest.mark.parametrize("node_mode", [True, False])
def test_the_gap_rows_add_up_to_the_idle_time_of_the_decode_steps(node_mode: bool) -> None:
    one = loop(node_mode=node_mode)
    pieces = inside(one.timeline.pieces, one.decode)
    rows = recurring(one)
    assert sum(row.total_ns for row in rows) == (pieces["end_ns"] - pieces["start_ns"]).sum()
    outside = pieces.filter(pl.col("idle_class") != IdleClass.INTRA_GRAPH)
    assert sum(row.count for row in rows) == len(pieces) - len(outside) + outside["gap_index"].n_unique()
    assert all(row.per_step_count == row.count / len(one.decode) for row in rows)
    assert [row.total_ns for row in rows] == sorted((row.total_ns for row in rows), reverse=True)


def test_a_gap_is_told_by_its_roles_and_the_call_that_ended_it() -> None:
    one = loop()
    rows = recurring(one)
    wide = next(row for row in rows if row.gap_class == "host_late")
    assert (wide.after_role, wide.before_role, wide.ended_by) == ("DtoH copy", "HtoD copy", "cudaMemcpyAsync")
    inner = {(row.after_role, row.before_role) for row in rows if row.gap_class == "intra_graph"}
    assert all(after == before is not None for after, before in inner)


def test_a_copy_of_an_unknown_kind_is_called_a_copy() -> None:
    one = loop()
    copies = one.timeline.operations["kind"] == MEMCPY
    index = pl.Series(copies.arg_true().to_list()[:3], dtype=pl.UInt32)
    for kind, called in ((1, "HtoD copy"), (-3, "copy"), (-128, "copy"), (99, "copy"), (127, "copy"), (None, "copy")):
        operations = one.timeline.operations.with_columns(
            copy_kind=pl.lit(kind, pl.Int8), replay_index=pl.lit(None, pl.UInt32)
        )
        told = tables.labels(replace(one.timeline, operations=operations), one.steps, index)
        assert set(told.to_list()) == {called}


def test_the_histograms_count_every_piece_once_on_shared_edges() -> None:
    one = loop()
    pieces = inside(one.timeline.pieces, one.decode)
    histograms = tables.histograms(tables.idle_pieces(one.timeline, one.decode, one.rank))
    assert sum(sum(histogram.counts) for histogram in histograms) == len(pieces)
    assert len({tuple(histogram.edges_ns) for histogram in histograms}) == 1
    edges = histograms[0].edges_ns
    assert edges == sorted(set(edges))
    inner = next(histogram for histogram in histograms if histogram.gap_class == "intra_graph")
    lengths = pieces.filter(pl.col("idle_class") == IdleClass.INTRA_GRAPH).select(
        n=pl.col("end_ns") - pl.col("start_ns")
    )
    for low, high, count in zip(edges, edges[1:], inner.counts, strict=False):
        assert lengths.filter(pl.col("n").is_between(low, high, closed="left")).height == count


def test_a_lead_is_the_end_of_the_work_before_minus_the_end_of_the_call() -> None:
    one = loop()
    leads = tables.lead_rows(one.timeline, one.steps, one.rank)
    ends = one.timeline.operations["end_ns"]
    starts = one.timeline.operations["start_ns"]
    assert len(leads) == 3 * len(one.steps.windows)
    for lead in leads:
        before = ends.filter(starts < lead.start_ns).max()
        assert isinstance(before, int)
        assert lead.call_end_ns is not None
        assert lead.lead_ns == before - lead.call_end_ns


def test_leads_are_thinned_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_LEADS", 5)
    one = loop()
    leads = tables.lead_rows(one.timeline, one.steps, one.rank)
    assert len(leads) <= 5
    assert leads[-1].index - leads[0].index >= len(one.steps.windows) - 3


def test_the_longest_idle_spans_stay_and_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    one = loop()
    outside = one.timeline.pieces.filter(pl.col("idle_class") != IdleClass.INTRA_GRAPH)
    every, none = tables.idle_spans(one.timeline, one.rank)
    assert (len(every), none) == (len(outside), 0)
    monkeypatch.setattr(tables, "MAX_IDLE", 3)
    spans, dropped = tables.idle_spans(one.timeline, one.rank)
    assert dropped == len(outside) - 3
    lengths = sorted(((span.end_ns - span.start_ns) for span in every), reverse=True)
    assert sorted((span.end_ns - span.start_ns for span in spans), reverse=True) == lengths[:3]
    assert [span.start_ns for span in spans] == sorted(span.start_ns for span in spans)
