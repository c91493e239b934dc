from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from hypothesis import given

from bubblefinder.causes.drains import NOBODY, OpenGaps, chains
from bubblefinder.timeline.model import EXPLAINED, IdleClass
from tests.captures import captures
from tests.judged import Judged, drawn, judge

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace


def test_a_wait_that_drains_the_gpu_is_charged_the_gap_it_opened() -> None:
    judged = drawn("""
        api     | ACCCCCCC....B.
        gpu0 s7 | .AAAAAC......BB
        C = copy DtoH 8 pageable
    """)
    assert judged.waits("drained") == [True]
    assert judged.bubbles_us() == [6]


def test_a_wait_under_which_the_gpu_stays_fed_is_benign_however_long() -> None:
    judged = drawn("""
        api     | A.BSSSSSSSSSSSSSS.D...
        gpu0 s7 | .AAAAAAAAABBBBBBBBBDDD
        S = cudaStreamSynchronize s7
    """)
    assert judged.waits("drained", "bubble_ns") == [(False, 0)]


def test_a_gap_that_opens_inside_a_wait_but_was_launched_before_its_end_is_nobodys() -> None:
    # A healthy loop: the wait for an old event ends long after a short gap that was queued all along.
    judged = drawn("""
        api     | ABSSSSSSSSSSSS.C.
        gpu0 s7 | .AAAA.BBBBBBBBBCC
        S = cudaEventSynchronize e1
    """)
    assert judged.waits("drained") == [False]
    assert judged.causes.charges.is_empty()


def test_the_chain_goes_on_until_the_host_is_ahead_again() -> None:
    judged = drawn("""
        api     | ACCCCC.B....D...E.F......
        gpu0 s7 | .AAAC...BB...DDDD.EEEEFFF
        C = copy DtoH 8 pageable
    """)
    # 3 us to B and 3 us to D, both launched late; E was launched before D had ended, so its gap isn't charged.
    assert judged.bubbles_us() == [3 + 3]
    assert judged.causes.charges["opened"].to_list() == [True, True, False, False]


def test_a_new_drained_wait_closes_the_chain_before_it() -> None:
    judged = drawn("""
        api     | ACCCCC.B..DDDDDDD....E..
        gpu0 s7 | .AAAC...BBBBBBD.......EE
        C = copy DtoH 8 pageable
        D = copy DtoH 4 pageable
    """)
    assert judged.bubbles_us() == [3, 7]


def test_a_copy_on_an_idle_gpu_waits_for_nothing() -> None:
    # The host is slow; the synchronous copy is over before its call returns and has nothing to wait for.
    judged = drawn("""
        api     | A.......CC........B.
        gpu0 s7 | .AAA.....C........BB
        C = copy DtoD 4096 via cudaMemcpy
    """)
    assert judged.waits("drained", "bubble_ns") == [(False, 0)]


def test_of_two_waits_around_one_gap_the_earlier_is_to_blame() -> None:
    judged = drawn("""
        api     | ASSSST.....B.
        gpu0 s7 | .AAAA.......BB
        S = cudaStreamSynchronize s7
        T = cudaDeviceSynchronize
    """)
    assert judged.waits("api", "drained") == [("cudaStreamSynchronize", True), ("cudaDeviceSynchronize", False)]


def test_only_waits_of_the_thread_that_launches_next_are_to_blame() -> None:
    judged = drawn("""
        api     | A..........B..
        api2    | DSSSSSS....E..
        gpu0 s7 | .AAA........BB
        gpu0 s9 | .DD..........EE
        S = cudaStreamSynchronize s9
    """)
    assert judged.waits("drained") == [False]


def test_a_gap_of_another_thread_ends_a_chain() -> None:
    judged = drawn("""
        api     | ACCCC.B.........F.
        api2    | ..........D.......
        gpu0 s7 | .AAC...B.........F
        gpu0 s9 | ...........DD.....
        C = copy DtoH 8 pageable
    """)
    assert judged.bubbles_us() == [3]


def test_gaps_inside_a_replay_neither_end_a_chain_nor_are_charged() -> None:
    judged = drawn("""
        api     | ACCCC.G........B.
        gpu0 s7 | .AAC....a..b....BB
        C = copy DtoH 8 pageable
        G = graph 5 a b
    """)
    assert judged.bubbles_us() == [4 + 4]
    inside = judged.timeline.pieces.filter(pl.col("idle_class") == IdleClass.INTRA_GRAPH)
    assert len(inside) == 1


def test_time_of_the_profiler_is_not_charged() -> None:
    judged = drawn("""
        api      | ACCCC.....B.
        gpu0 s7  | .AAC.......BB
        profiler | .....xxx....
        C = copy DtoH 8 pageable
    """)
    assert judged.bubbles_us() == [7 - 3]


def test_a_short_wait_may_cost_a_lot() -> None:
    judged = drawn("""
        api     | A...............S...........................B.
        gpu0 s7 | .AAAAAAAAAAAAAAA............................BBB
        S = cudaStreamSynchronize s7
    """)
    assert judged.waits("drained", "blocked_ns", "bubble_ns") == [(True, 1_000, 28_000)]


def test_unseen_graph_work_accuses_nobody() -> None:
    judged = drawn("""
        api     | GCCCCC....A.
        gpu0 s7 | ....C......AA
        G = cudaGraphLaunch
        C = copy DtoH 8 pageable
    """)
    assert judged.timeline.mode == "unseen"
    assert judged.waits("drained", "bubble_ns") == [(False, 0)]


def test_chains_by_hand() -> None:
    gaps = OpenGaps(
        gap_index=np.arange(7),
        starts=np.arange(0, 70, 10),
        launched=np.array([5, 15, 25, 30, 45, 55, 65]),
        due=np.array([5, 15, 25, 30, 45, 55, 65]),
        thread=np.array([1, 1, 1, 1, 1, 2, 1]),
        known=np.array([True, True, True, True, True, True, True]),
    )
    culprit = np.array([NOBODY, 3, NOBODY, NOBODY, 4, NOBODY, NOBODY])
    # Gap 3 was launched as it opened (not late); gap 5 belongs to another thread, and nothing after it comes back.
    assert chains(gaps, culprit).tolist() == [NOBODY, 3, 3, NOBODY, 4, NOBODY, NOBODY]


def blamed(judged: Judged) -> dict[int, int]:
    """Gap to wait by the definition, one gap at a time."""
    waits, gaps = judged.causes.waits, judged.timeline.gaps
    pieces = judged.timeline.pieces
    calls = judged.timeline.calls
    found: dict[int, int] = {}
    idle_before = dict(gaps.select("after_index", "start_ns").rows())

    def waits_for_nothing(wait: dict[str, int]) -> bool:
        """A copy on a GPU that was idle when its call began; all copies here are short."""
        idle = idle_before.get(wait["copy_index"])
        return not wait["synchronises"] and idle is not None and idle <= wait["start_ns"]

    for device in judged.timeline.devices:
        open_wait, open_thread = NOBODY, 0
        for index, gap in enumerate(gaps.rows(named=True)):
            mine = pieces.filter(pl.col("gap_index") == index)["idle_class"].to_list()
            if gap["gpu"] != device.gpu or set(mine) <= {IdleClass.PROFILER, IdleClass.INTRA_GRAPH}:
                continue
            call = None if gap["call_index"] is None else calls.row(gap["call_index"], named=True)
            holders = [
                (wait["start_ns"], number)
                for number, wait in enumerate(waits.rows(named=True))
                if call
                and wait["gpu"] == gap["gpu"]
                and wait["launcher"] == call["thread"]
                and not waits_for_nothing(wait)
                and wait["start_ns"] <= gap["start_ns"] <= wait["end_ns"] <= call["start_ns"]
            ]
            if holders:
                assert call is not None
                open_wait, open_thread = min(holders)[1], call["thread"]
            elif call is None or call["start_ns"] <= gap["start_ns"] or call["thread"] != open_thread:
                open_wait = NOBODY
            if open_wait != NOBODY:
                found[index] = open_wait
    return found


@given(captures())
def test_charges_are_what_the_definition_says(trace: Trace) -> None:
    judged = judge(trace)
    expected = {} if judged.timeline.mode == "unseen" else blamed(judged)
    pieces = judged.timeline.pieces.with_row_index("piece_index").filter(
        pl.col("idle_class").is_in([int(idle_class) for idle_class in EXPLAINED]),
    )
    wanted = {
        (index, expected[gap]) for index, gap in pieces.select("piece_index", "gap_index").rows() if gap in expected
    }
    charges = judged.causes.charges.select("piece_index", "wait_index").rows()
    assert len(charges) == len({piece for piece, _ in charges})
    assert set(charges) == wanted


@given(captures())
def test_bubbles_never_exceed_what_is_idle(trace: Trace) -> None:
    judged = judge(trace)
    length = pl.col("end_ns") - pl.col("start_ns")
    idle = judged.timeline.pieces.select(length.sum()).item()
    bubbles = judged.causes.waits["bubble_ns"]
    assert 0 <= bubbles.sum() <= idle
    assert (bubbles.filter(~judged.causes.waits["drained"]) == 0).all()
