"""The simulator keeps the rules of a GPU, whatever a test builds on it."""

from __future__ import annotations

import polars as pl

from bubblefinder.timeline.build import build_timeline
from tests.simulate import Graph, Machine, collective, nodes


def test_a_stream_does_one_thing_after_the_other_and_a_read_returns_behind_its_copy() -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(5):
        host.work(50)
        host.upload()
        host.replay(Graph(3, nodes("attn", "mlp") * 4))
        host.kernel("sample", 5)
        host.read()
    trace = machine.trace()
    operations = trace.operations.sort("start_ns")
    assert (operations["start_ns"].shift(-1) >= operations["end_ns"]).drop_nulls().all()
    reads = operations.filter(pl.col("copy_kind") == 2).join(trace.calls, on="correlation", suffix="_call")
    assert len(reads) == 5
    assert (reads["end_ns_call"] > reads["end_ns"]).all()
    timeline = build_timeline(trace)
    assert (len(timeline.replays), timeline.replays["nodes"].unique().to_list()) == (5, [8])
    assert timeline.operations["call_index"].null_count() == 0


def test_no_work_starts_before_its_call() -> None:
    machine = Machine(jitter=0.3)
    host = machine.host()
    for number in range(40):
        host.kernel(f"k{number % 3}", 2)
        host.download()
    joined = machine.trace().operations.join(machine.trace().calls, on="correlation", suffix="_call")
    assert (joined["start_ns"] > joined["start_ns_call"]).all()


def test_a_pass_of_a_graph_runs_its_nodes_again() -> None:
    machine = Machine()
    machine.host().replay(Graph(3, nodes("a", "b"), passes=4))
    assert machine.trace().operations["graph_node"].to_list() == [3 << 32 | 1, 3 << 32 | 2] * 4


def test_in_graph_mode_a_launch_is_one_row() -> None:
    machine = Machine(node_mode=False)
    machine.host().replay(Graph(3, nodes("a", "b"), passes=4))
    assert machine.trace().operations["graph"].to_list() == [3]


def test_a_wait_lasts_until_the_stream_has_run_dry_and_a_collective_until_the_last_has_come() -> None:
    machine = Machine()
    ranks = [machine.host(pid=1001 + gpu, gpu=gpu) for gpu in (0, 1)]
    ranks[1].work(500)
    collective(ranks, "all_reduce", 10)
    first, second = machine.trace().operations.sort("gpu").select("start_ns", "end_ns").rows()
    assert second[0] - first[0] > 450_000
    assert first[1] == second[1]
    ranks[0].synchronize()
    assert ranks[0].now > first[1]


def test_a_stream_waits_for_the_event_of_another() -> None:
    machine = Machine()
    host = machine.host()
    long = host.kernel("long", 500)
    host.stream_wait(host.record(), stream=13)
    assert host.kernel("after", 5, stream=13) > long + 450_000
    host.wait_for(host.record(2, stream=13))
    assert host.now > long + 450_000
