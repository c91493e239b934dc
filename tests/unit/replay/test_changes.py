"""Loops small enough to work out by hand: what each change must make of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblefinder.causes.launches import PHASE_LAUNCHES
from bubblefinder.replay.changes import (
    CaptureEager,
    CloseGaps,
    DropKernels,
    FreeLaunches,
    HostSpeed,
    ReleaseQueue,
    RemovePauses,
    RemoveTracing,
    RemoveWaits,
    ShortenHost,
    kernel_time,
)
from tests.judged import drawn, judge
from tests.modelled import model_drawn, steps_us
from tests.simulate import Graph, Machine, nodes
from tests.unit.causes.test_sites import steps

TIMES = 6
ALL = RemoveWaits(frozenset(range(20)))

# 14 us on the GPU, then 5 us of host work with the GPU empty: a step of 20 us.
READ = (
    steps(
        "..G.CCCCCCCCCCCCCC..",
        "...gggggggg.fffffC..",
        "[step              ]",
        times=TIMES,
    )
    + "G = graph 5 g f\nC = copy DtoH 8 pageable\n"
)


def test_without_the_read_the_host_runs_ahead_and_the_gpu_bounds_the_step() -> None:
    model = model_drawn(READ)
    assert steps_us(model) == [20]
    # The copy goes with the read, and a queued graph follows at once, as the queued copy did.
    assert steps_us(model, [ALL]) == [14]


# The host needs 16 us of its own a step, the GPU 5: the host stays the bottleneck without the read.
HOST = (
    steps(
        "..G.CCCC............",
        "...gg.fC............",
        "[step              ]",
        times=TIMES,
    )
    + "G = graph 5 g f\nC = copy DtoH 8 pageable\n"
)


def test_where_the_host_is_the_bottleneck_only_the_wait_itself_is_gained() -> None:
    model = model_drawn(HOST)
    assert steps_us(model) == [20]
    (then,) = steps_us(model, [ALL])
    assert 20 - 4 <= then < 20


def test_a_host_twice_as_fast_halves_what_the_host_bounds() -> None:
    model = model_drawn(HOST)
    (then,) = steps_us(model, [ALL, HostSpeed(2)])
    assert then == pytest.approx(8.5, abs=1)


def test_a_faster_host_doesnt_speed_up_a_gpu_that_is_never_empty() -> None:
    busy = """
        nvtx    | [step              ][step              ][step              ][step              ]
        api     | g...................g...................g...................g...................
        gpu0 s7 | ...ggggggggggggggggggg.ggggggggggggggggggg.ggggggggggggggggggg.ggggggggggggggggggg.
        g = graph 5
    """
    assert steps_us(model_drawn(busy), [HostSpeed(1e9)]) == [20]


def test_free_launches_take_their_time_off_a_host_bound_step() -> None:
    launches = (
        steps(
            "GGGGGG..............",
            ".....gg.ff..........",
            "[step              ]",
            times=TIMES,
        )
        + "G = graph 5 g f\n"
    )
    model = model_drawn(launches)
    assert steps_us(model) == [20]
    assert steps_us(model, [FreeLaunches()]) == [14]


def test_an_eager_phase_as_a_graph_runs_back_to_back() -> None:
    count = PHASE_LAUNCHES
    api = "".join("pq"[n % 2] + ".." for n in range(count))
    gpu = "." + "".join("pq"[n % 2] + ".." for n in range(count))
    width = len(api) + 10
    model = model_drawn(
        steps(api.ljust(width, "."), gpu.ljust(width, "."), "[" + "step".ljust(width - 2) + "]", times=TIMES),
    )
    assert steps_us(model) == [width]
    (then,) = steps_us(model, [CaptureEager("eager")])
    # The host still needs the 9 us between two phases, and a launch of 30 us is assumed: less than before.
    assert then < width
    assert then >= count


NODES = (
    steps(
        "G...................",
        ".aaaa....bbbb.......",
        "[step              ]",
        times=TIMES,
    )
    + "G = graph 5 a b\n"
)


def test_closing_gaps_takes_its_share_off_the_inside_of_a_graph() -> None:
    model = model_drawn(NODES)
    replays = model.blocks["intra_ns"].to_list()
    assert replays == [4_000] * TIMES
    assert steps_us(model, [CloseGaps(0.5)]) == [20]  # the host bounds this step
    assert steps_us(model, [CloseGaps(0.5), HostSpeed(1e9)])[0] == pytest.approx(
        steps_us(model, [HostSpeed(1e9)])[0] - 2, abs=0.01
    )


def test_dropped_kernels_take_their_time_with_them() -> None:
    judged = drawn(NODES)
    model = model_drawn(NODES)
    lost = kernel_time(judged.timeline.operations, model.blocks, judged.timeline.trace.names, "^a$")
    assert lost == (4_000,) * TIMES
    fast = [HostSpeed(1e9)]
    assert steps_us(model, [DropKernels("^a$", lost), *fast])[0] == pytest.approx(
        steps_us(model, fast)[0] - 4, abs=0.01
    )


def test_changes_are_replayed_together() -> None:
    model = model_drawn(HOST)
    both = steps_us(model, [ALL, HostSpeed(2)])[0]
    (read,), (host,) = steps_us(model, [ALL]), steps_us(model, [HostSpeed(2)])
    assert both < min(read, host)


def test_what_the_host_does_before_each_call_is_shortened_call_by_call() -> None:
    model = model_drawn(HOST)
    calls = np.arange(len(model.calls))
    before, inside = np.full(len(calls), 1_000), np.zeros(len(calls), np.int64)
    # Two calls a step, a microsecond less before each: the read ends with the GPU's work however early it begins.
    assert steps_us(model, [ShortenHost(calls, before, inside)]) == [19]
    assert steps_us(model, [ShortenHost(calls, inside, inside)]) == [20]


def test_tracing_is_taken_off_the_work_that_paid_for_it() -> None:
    model = model_drawn(READ)
    graphs = np.where(model.blocks["kind"].to_numpy() == "graph", 2_000.0, 0.0)
    blocks, calls = np.zeros(len(model.blocks)), np.zeros(len(model.calls))
    nothing = RemoveTracing(blocks, blocks, blocks, blocks, calls, calls, np.ones(len(calls)), blocks)
    assert steps_us(model, [nothing]) == [20]
    assert steps_us(model, [replace(nothing, inside_ns=graphs)]) == [18]
    assert steps_us(model, [replace(nothing, gaps_ns=graphs / 2)]) == [19]


def test_a_pause_is_taken_off_the_work_before_the_next_call() -> None:
    model = model_drawn(HOST)
    thread, first = model.calls["thread"][0], model.calls["start_ns"][0]
    starts = tuple(first + (20 * step + 9) * 1_000 for step in range(TIMES))
    held = RemovePauses((thread,) * TIMES, starts, tuple(start + 4_000 for start in starts))
    assert steps_us(model, [held]) == [16]
    other = RemovePauses((thread + 1,) * TIMES, held.starts, held.ends)
    assert steps_us(model, [other]) == [20]


# The GPU is through with d while the call that launches g still runs: that gap is the call's, and none of the queue.
# 16 us on the GPU in three graphs, 14 us of the host's own, a read between.
LAUNCHING = (
    steps(
        "DGGGGGGECCCCCCCCCCCCCCCC......",
        ".dd...gggggggggg.eeee.C.......",
        "[step                        ]",
        times=TIMES,
    )
    + "D = graph 3 d\nG = graph 5 g\nE = graph 7 e\nC = copy DtoH 8 pageable\n"
)


def test_a_gap_that_a_running_launch_call_leaves_is_gone_once_the_host_is_ahead() -> None:
    model = model_drawn(LAUNCHING)
    assert steps_us(model) == [30]
    assert steps_us(model, [ALL]) == [2 + 1 + 10 + 1 + 4 + 1]


@pytest.mark.parametrize("held_us", [90, 300])
def test_released_work_follows_the_work_before_it(held_us: float) -> None:
    machine = Machine(jitter=0)
    host = machine.host()
    events = []
    for number in range(12):
        host.work(20)
        host.replay(Graph(3, nodes("attn", "mlp") * 20))
        host.occupy(host.queued_until() + round(held_us * 1_000))
        host.kernel("sample", 12)
        events.append(host.record(number))
        if number > 1:
            host.wait_for(events[number - 2])
    analysis = judge(machine.trace())
    model, (queue,) = analysis.model, analysis.facts.steps[0].queues
    assert model is not None
    (now,) = steps_us(model)
    (then,) = steps_us(model, [ReleaseQueue(queue.ended_by)])
    assert now - then == pytest.approx(held_us, abs=2)
    assert steps_us(model, [ReleaseQueue(())]) == [now]
