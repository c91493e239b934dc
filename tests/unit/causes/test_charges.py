from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from hypothesis import given

from tests.captures import captures
from tests.judged import drawn, judge

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace


def test_a_driver_call_takes_its_part_of_the_chain_that_a_wait_opened() -> None:
    judged = drawn(f"""
        api     | ASSSSS{"F" * 30}...B.
        gpu0 s7 | .AAAA{"." * 35}BB
        S = cudaStreamSynchronize s7
        F = cuMemSetAccess
    """)
    assert judged.waits("api", "bubble_ns") == [("cudaStreamSynchronize", 5_000), ("cuMemSetAccess", 30_000)]
    assert judged.causes.charges["opened"].to_list() == [True, False, True, True]


def test_a_pause_takes_its_part_too() -> None:
    quiet, busy = "." * 40, "." * 40
    judged = drawn(f"""
        api     | ASSSSS{quiet}B.
        os      | ......{"x" * 30}
        gpu0 s7 | .AAAA.{busy}.BB
        S = cudaStreamSynchronize s7
        x = name recvmsg
    """)
    charges = judged.causes.charges.with_columns(ns=pl.col("end_ns") - pl.col("start_ns"))
    assert charges.filter(pl.col("pause_index") == 0)["ns"].sum() == 30_000
    assert judged.bubbles_us() == [12]


@given(captures())
def test_no_moment_is_charged_twice(trace: Trace) -> None:
    judged = judge(trace)
    gpu = judged.timeline.pieces["gpu"].gather(judged.causes.charges["piece_index"])
    charges = judged.causes.charges.with_columns(gpu=gpu).sort("gpu", "start_ns")
    free = charges["start_ns"] >= charges.select(pl.col("end_ns").shift(1).over("gpu"))["end_ns"]
    assert free.drop_nulls().all()
    assert (charges["wait_index"].is_null() ^ charges["pause_index"].is_null()).all()
