from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.ledger import device_ledger
from tests.simulate import Graph, Machine, nodes

if TYPE_CHECKING:
    from bubblefinder.timeline.model import Timeline

US = 1_000
BODY = Graph(3, nodes("attn", "mlp") * 10)


def loop(missing_us: float, *, always: bool = True, wait: str = "cudaStreamSynchronize_v3020") -> Timeline:
    """Ten launches of a graph of which the first pass is on record; the rest of it takes `missing_us`."""
    machine = Machine(jitter=0)
    host = machine.host()
    for number in range(10):
        host.work(100)
        host.replay(BODY)
        if always or number == 5:
            host.occupy(host.queued_until() + round(missing_us * US))
        host.synchronize(wait)
    host.replay(BODY)
    return build_timeline(machine.trace())


def unrecorded_us(timeline: Timeline) -> float:
    return device_ledger(timeline, timeline.devices[0])["unrecorded_ns"] / US


@pytest.mark.parametrize("wait", ["cudaStreamSynchronize_v3020", "cudaDeviceSynchronize_v3020", "cuCtxSynchronize"])
def test_a_wait_that_outlasts_all_work_on_record_waits_for_work_without_a_record(wait: str) -> None:
    timeline = loop(9_800, wait=wait)
    assert unrecorded_us(timeline) == pytest.approx(10 * 9_800, rel=0.001)
    (note,) = [note for note in timeline.notes if note.code == "waits-beyond-records"]
    assert note.count == 10
    assert "9.80 ms" in note.message


@pytest.mark.parametrize("missing_us", [90, 600])
def test_a_thread_that_is_woken_late_waits_for_nothing_unrecorded(missing_us: float) -> None:
    assert unrecorded_us(loop(missing_us)) == 0


def test_the_time_of_a_single_long_one_and_no_more() -> None:
    assert unrecorded_us(loop(2_500, always=False)) == pytest.approx(2_502, abs=3)


def test_a_wait_before_any_work_says_nothing() -> None:
    machine = Machine(jitter=0)
    host = machine.host()
    host.call("cudaDeviceSynchronize_v3020", 300_000)
    host.replay(BODY)
    host.synchronize()
    assert unrecorded_us(build_timeline(machine.trace())) == 0


@pytest.mark.parametrize("api", ["cudaMemcpyBatchAsync_v12080", "cuMemcpyBatchAsync", "cudaMemPrefetchAsync_v8000"])
def test_batches_of_copies_and_prefetches_without_a_record_taint_what_follows(api: str) -> None:
    machine = Machine(jitter=0)
    host = machine.host()
    for _ in range(5):
        host.work(10)
        host.call(api, 12)
        host.occupy(max(host.now, host.queued_until()) + 600 * US)
        host.replay(BODY)
    timeline = build_timeline(machine.trace())
    # The first call comes before any work; the others keep the stream, which falls free between the launches.
    assert unrecorded_us(timeline) == pytest.approx(4 * 600, rel=0.02)
    assert timeline.devices[0].launches_seen - timeline.devices[0].launches_recorded == 5
