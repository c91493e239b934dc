from __future__ import annotations

import pytest

from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.model import CaptureMode, Timeline
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.model import GRAPH, KERNEL
from bubblefinder.trace.sketch import Sketch, process_key, thread_key

ME = process_key(1001)
THREAD = thread_key(ME, 1)


def replays(timeline: Timeline) -> list[tuple[object, ...]]:
    return timeline.replays.select("gpu", "start_ns", "end_ns", "nodes").rows()


def test_a_launch_recorded_twice_over_counts_once_by_its_nodes() -> None:
    sketch = Sketch()
    launch = sketch.call("cudaGraphLaunch_v10000", 0, 5, THREAD)
    sketch.operation(GRAPH, 10, 60, process=ME, correlation=launch, graph=9)
    for number, start in enumerate((12, 40), 1):
        sketch.operation(
            KERNEL, start, start + 10, process=ME, correlation=launch, name="node", graph_node=5 << 32 | number
        )
    timeline = build_timeline(sketch.trace())
    assert timeline.mode is CaptureMode.NODE
    assert replays(timeline) == [(0, 12, 50, 2)]
    assert timeline.devices[0].busy_ns == 20


def test_launches_of_two_kinds_make_the_capture_mixed() -> None:
    sketch = Sketch()
    for number in range(2):
        launch = sketch.call("cudaGraphLaunch_v10000", number * 100, number * 100 + 5, THREAD)
        node = {"name": "node", "graph_node": 5 << 32 | 1} if number else {"graph": 9}
        kind = KERNEL if number else GRAPH
        sketch.operation(kind, number * 100 + 10, number * 100 + 60, process=ME, correlation=launch, **node)
    timeline = build_timeline(sketch.trace())
    assert timeline.mode is CaptureMode.MIXED
    assert replays(timeline) == [(0, 10, 60, None), (0, 110, 160, 1)]


def test_one_launch_on_two_gpus_has_a_replay_on_each() -> None:
    sketch = Sketch()
    launch = sketch.call("cudaGraphLaunch_v10000", 0, 5, THREAD)
    for gpu, start in ((0, 10), (1, 20), (0, 30)):
        node = {"graph_node": 5 << 32 | start, "correlation": launch, "gpu": gpu}
        sketch.operation(KERNEL, start, start + 5, process=ME, name="node", **node)
    assert replays(build_timeline(sketch.trace())) == [(0, 10, 35, 2), (1, 20, 25, 1)]


def test_graph_rows_without_a_launch_are_a_replay_each() -> None:
    sketch = Sketch()
    for start in (10, 30):
        sketch.operation(GRAPH, start, start + 5, process=ME, correlation=None, graph=9)
    assert replays(build_timeline(sketch.trace())) == [(0, 10, 15, None), (0, 30, 35, None)]


def test_replays_that_overlap_in_time_stay_apart() -> None:
    sketch = Sketch()
    launches = [sketch.call("cudaGraphLaunch_v10000", n, n + 1, THREAD) for n in range(2)]
    for number, start in enumerate((10, 12, 20, 22)):
        launch = {"correlation": launches[number % 2], "stream": 7 + number % 2, "graph_node": 5 << 32 | number + 1}
        sketch.operation(KERNEL, start, start + 5, process=ME, name="node", **launch)
    timeline = build_timeline(sketch.trace())
    assert replays(timeline) == [(0, 10, 25, 2), (0, 12, 27, 2)]
    assert timeline.operations["replay_index"].to_list() == [0, 1, 0, 1]


@pytest.mark.parametrize("node", [None, 5 << 32 | 1], ids=["eager", "node"])
def test_only_operations_of_graphs_belong_to_a_replay(node: int | None) -> None:
    sketch = Sketch()
    sketch.operation(KERNEL, 0, 5, process=ME, correlation=3, name="kernel", graph_node=node)
    assert build_timeline(sketch.trace()).operations["replay_index"].to_list() == [None if node is None else 0]


def test_graphs_of_which_only_copies_and_memsets_are_left_are_unseen() -> None:
    picture = "api | G....G....\ngpu0 | .cmm..cmm.\nG = graph c m\nc = copy DtoD 64\nm = memset 64"
    assert build_timeline(draw(picture)).mode is CaptureMode.UNSEEN
    assert build_timeline(draw(picture.replace("m = memset 64", "m = kernel k"))).mode is CaptureMode.NODE


def test_copies_of_graphs_beside_whole_replays_make_the_capture_mixed() -> None:
    trace = draw("api | G....H....\ngpu0 | .GGG..ccc.\nG = graph\nH = graph c\nc = copy DtoD 64")
    assert build_timeline(trace).mode is CaptureMode.MIXED
