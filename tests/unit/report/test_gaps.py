from __future__ import annotations

import polars as pl
import pytest

import bubblefinder
from bubblefinder.errors import CannotAnswerError
from bubblefinder.pipeline import Analysis
from bubblefinder.trace.drawn import draw
from tests import samples

CLASSES = ("intra_graph", "host_late", "launching", "queued", "unattributed", "unrecorded", "profiler")


@pytest.mark.parametrize("name", ["nextn_before.node", "tp2_before.node", "torch_eager", "null_gpu_1.graph"])
def test_a_class_sums_to_the_ledger_of_every_step(name: str) -> None:
    frame = bubblefinder.gaps(samples.analysis(name))
    keys = ("gpu", "pid", "step", "idle_class")
    found = {tuple(key): ns for *key, ns in frame.group_by(keys).agg(pl.col("length_ns").sum()).iter_rows()}
    rows = samples.report(name).steps.rows
    for row in rows:
        ledger = {one: getattr(row, f"{one}_ns") for one in CLASSES}
        told = {one: found.get((row.gpu, row.pid, row.index, one), 0) for one in CLASSES}
        assert told == {one: told[one] if ns is None else ns for one, ns in ledger.items()}
    assert {row.index for row in rows} >= set(frame["step"].drop_nulls())
    assert frame.equals(frame.sort("gpu", "pid", "start_ns"))


def test_what_a_finding_has_of_the_decode_time_is_what_its_rows_sum_to() -> None:
    frame = bubblefinder.gaps(samples.analysis("nextn_before.node")).filter(pl.col("step").is_not_null())
    told = samples.report("nextn_before.node")
    first = told.findings[0]
    mine = frame.filter(pl.col("excluded").is_null() & (pl.col("finding") == first.rule))
    assert mine["title"].unique().to_list() == [first.title]
    assert mine["wait"].unique().to_list() == [first.site.api]
    decode_ns = sum(row.duration_ns for row in told.steps.rows if row.excluded is None)
    assert first.idle_share == pytest.approx(mine["length_ns"].sum() / decode_ns)


def test_idle_under_a_pause_is_that_finding_s() -> None:
    gap = "." * 400
    api, gpu = (
        step * 4 + step[:9] + gap + step[9:] + step * 2 for step in ("G.........H.......", ".aaaaa.....ccccc..")
    )
    frame = bubblefinder.gaps(
        Analysis(draw(f"api | {api}\ngpu0 s7 | {gpu}\nG = graph 5 a\nH = graph 6 c\n", us_per_char=1))
    )
    (paused,) = frame.filter(pl.col("finding").is_not_null()).iter_rows(named=True)
    assert (paused["length_ns"], paused["wait"], paused["idle_class"]) == (404_000, None, "host_late")


def test_a_gap_says_what_lies_around_it_and_what_ended_it() -> None:
    frame = bubblefinder.gaps(samples.analysis("nextn_before.node"))
    inside = frame.filter(pl.col("idle_class") == "intra_graph")
    assert inside["after_role"].equals(inside["before_role"])
    assert inside["call"].unique().to_list() == ["cudaGraphLaunch"]
    longest = frame.filter(pl.col("finding").is_not_null()).sort("length_ns")[-1]
    assert (longest["after_role"][0], longest["call"][0]) == ("draft-extend", "cudaMemcpyAsync")


def test_no_gap_is_told_where_graphs_ran_unseen() -> None:
    with pytest.raises(CannotAnswerError, match="lacks the GPU work of its CUDA graph launches"):
        bubblefinder.gaps(samples.analysis("dspark_before.nsys2023.graph"))


def test_a_gpu_without_steps_has_its_gaps_without_them() -> None:
    frame = bubblefinder.gaps(Analysis(draw("api | abc......\ngpu0 s7 | ...a..b.c\n")))
    assert frame["step"].null_count() == len(frame) > 0
    assert frame["pid"].null_count() == len(frame)
