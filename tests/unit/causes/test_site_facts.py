from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

from bubblefinder.causes.decode import lanes
from bubblefinder.causes.recurring import recurring_groups
from bubblefinder.causes.site_facts import facts_of_sites
from tests.judged import drawn, judge
from tests.unit.causes.test_sites import CPU, PLAN, steps

if TYPE_CHECKING:
    from bubblefinder.causes.facts import SiteFacts


def sites(picture: str) -> tuple[SiteFacts, ...]:
    judged = drawn(picture)
    return judged.facts.sites


def test_a_read_once_a_step_counts_once_though_it_is_a_copy_and_a_synchronisation() -> None:
    (site,) = sites(CPU)
    assert (site.api, site.copy_kind, site.memory_kind, site.bytes) == ("cudaMemcpyAsync", "DtoH", "pageable", 8)
    assert (site.steps, site.steps_affected, site.occurrences) == (4, 3, 3)  # nothing follows the last read
    assert site.per_step_count == 1


def test_blocked_time_is_that_of_all_waits_of_a_step_and_the_bubble_that_of_the_chain() -> None:
    (site,) = sites(CPU)
    # The copy's call takes 7 us, the synchronisation 2; from the copy's end to the next graph the GPU idles 13 us.
    assert site.blocked_p50_ns == 9_000
    assert site.bubble_p50_ns == 13_000
    assert site.bubble_share == pytest.approx(13 / 21)


def test_evidence_is_the_calls_and_then_their_copies_as_stored() -> None:
    judged = drawn(CPU)
    (site,) = judged.facts.sites
    tables = [row.table for row in site.evidence]
    assert tables == ["CUPTI_ACTIVITY_KIND_RUNTIME"] * 3 + ["CUPTI_ACTIVITY_KIND_MEMCPY"] * 3
    calls = judged.timeline.trace.calls.rows_by_key("row", named=True, unique=True)
    for row in site.evidence[:3]:
        assert (calls[row.row]["start_ns"], calls[row.row]["end_ns"]) == (row.start_ns, row.end_ns)


def test_a_read_that_only_a_prefill_waits_for_says_nothing_of_the_steps() -> None:
    step, prefill = ("G..........", "..ggffggffg"), ("P.Q.CCCCCCCCCCCCCCCC..........", "..PPPPPPQQQQQQQQQQC...........")
    api, gpu = (step[row] * 8 + prefill[row] + step[row] * 8 for row in (0, 1))
    legend = "G = graph 5 g*3 f*2\nP = kernel attention\nQ = kernel gemm\nC = copy DtoH 8 pageable\n"
    judged = drawn(f"api | {api}\ngpu0 s7 | {gpu}\n{legend}")
    assert "prefill" in judged.steps.windows["excluded"].to_list()
    assert judged.causes.sites["drained"].any()
    assert judged.facts.sites == ()


def test_three_reads_of_one_plan_are_one_record_with_three_members() -> None:
    (plan,) = sites(PLAN)
    assert plan.sites == (0, 1, 2)
    assert [member.bytes for member in plan.members] == [68, 68, 64]
    assert plan.per_step_count == 3
    assert plan.members[-1].copies_after == ("HtoD",)
    assert plan.members[-1].memory_after == ("pageable",)
    assert plan.bubble_p50_ns == sum(member.bubble_p50_ns or 0 for member in plan.members)


def test_a_private_stream_behind_an_event_is_told() -> None:
    read = steps(
        "..G.R.W.CSSSSSSSSS........",
        "...gggggggggg.............",
        "[step                    ]",
    )
    copies = "gpu0 s14 | " + "..............C..........." * 4
    legend = """
        G = graph 5 g
        C = copy DtoH 8 pinned
        R = cudaEventRecord s7 e1
        W = cudaStreamWaitEvent s14 e1
        S = cudaStreamSynchronize s14
    """
    (site,) = sites(read + copies + legend)
    assert (site.private_stream, site.event_before) == (True, True)
    assert (site.api, site.copy_kind, site.bytes) == ("cudaStreamSynchronize", "DtoH", 8)


def test_a_read_on_the_compute_stream_without_an_event_is_told() -> None:
    (site,) = sites(CPU)
    assert (site.private_stream, site.event_before) == (False, False)


@pytest.mark.parametrize(("column", "private"), [("context", False), ("stream", None)])
def test_without_contexts_a_stream_is_told_by_its_number_and_without_numbers_not_at_all(
    column: str, private: bool | None
) -> None:
    known = drawn(CPU).timeline.trace
    trace = replace(
        known, operations=known.operations.with_columns(pl.lit(None, known.operations.schema[column]).alias(column))
    )
    judged = judge(trace)
    (site,) = judged.facts.sites
    assert site.private_stream is private


def test_eager_kernels_around_a_read_are_named() -> None:
    (site,) = sites(
        steps(
            "..G.r.CCCCCCC...w.x....",
            "...ggggrr.C......w.x...",
            "[step                 ]",
        )
        + "G = graph 5 g\nC = copy DtoH 4 pageable\n"
        + "r = kernel DeviceReduce\nw = kernel DeviceSelect\nx = kernel scatter\n"
    )
    assert site.kernels_before == ("DeviceReduce",)
    assert site.kernels_after == ("DeviceSelect", "scatter")


def test_without_steps_there_are_no_facts() -> None:
    assert (
        sites("""
        api     | ACCCC...B
        gpu0 s7 | .AAC....B
        C = copy DtoH 8 pageable
    """)
        == ()
    )


def test_the_result_of_the_step_before_is_a_step_behind_and_that_of_the_running_one_none() -> None:
    """Both loops wait once a step for the event behind a copy; the first for the copy that it has just issued."""
    legend = "V = graph 2\nC = copy DtoH 64 pinned\nR = cudaEventRecord e1\nS = cudaEventSynchronize e1\n"
    same = drawn(f"api | {'VCRSSSSSSS....' * 6}\ngpu0 s7 | {'.VVVVVVVVC....' * 6}\n{legend}")
    before = drawn(f"api | {'V.S.CR........' * 6}\ngpu0 s7 | {'.VVVVVVVVC....' * 6}\n{legend}")
    for judged, behind in ((same, 0), (before, 1)):
        (lane,) = lanes(judged.timeline, judged.steps, judged.causes)
        groups = recurring_groups(judged.causes, lane)
        found = [facts_of_sites(judged.timeline, judged.causes, lane, group) for group in groups]
        assert [site.steps_behind for site in found if site.api == "cudaEventSynchronize"] == [behind]
