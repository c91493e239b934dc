from __future__ import annotations

import polars as pl

from bubblefinder.trace.columns import FRAMES
from bubblefinder.trace.model import KERNEL, MEMCPY
from bubblefinder.trace.sketch import Sketch, process_key, thread_key

ME = process_key(7)


def test_an_empty_sketch_has_every_frame_with_its_columns() -> None:
    trace = Sketch().trace()
    for name, columns in FRAMES.items():
        assert getattr(trace, name).columns == list(columns)
        assert getattr(trace, name).is_empty()


def test_rows_are_sorted_by_time_and_numbered_by_table() -> None:
    sketch = Sketch()
    for kind, start, end in ((KERNEL, 9, 12), (MEMCPY, 5, 6), (KERNEL, 1, 8), (KERNEL, 1, 2)):
        sketch.operation(kind, start, end, process=ME)
    rows = sketch.trace().operations.select("kind", "row", "start_ns", "end_ns").rows()
    assert rows == [(KERNEL, 0, 1, 2), (KERNEL, 1, 1, 8), (MEMCPY, 0, 5, 6), (KERNEL, 2, 9, 12)]


def test_keys_are_those_of_nsight_systems() -> None:
    thread = thread_key(ME, 3)
    assert (thread >> 24) & 0xFF_FFFF == 7
    assert thread & 0xFF_FFFF == 3
    assert thread >> 24 == ME


def test_correlation_ids_of_two_processes_collide() -> None:
    sketch = Sketch()
    found = [sketch.call("cudaLaunchKernel", 0, 1, thread_key(process_key(pid), 1)) for pid in (7, 8, 7)]
    assert found == [1, 1, 2]


def test_an_event_wait_links_to_the_latest_record_of_its_event() -> None:
    sketch = Sketch()
    thread = thread_key(ME, 1)
    sketch.call("cudaEventRecord_v3020", 0, 1, thread, event=3)
    last = sketch.call("cudaEventRecord_v3020", 2, 3, thread, event=3)
    sketch.call("cudaEventRecord_v3020", 4, 5, thread, event=4)
    sketch.call("cudaEventSynchronize_v3020", 6, 9, thread, event=3)
    trace = sketch.trace()
    assert trace.syncs["event_sync"].to_list() == [last]
    assert trace.events.filter(pl.col("event_sync") == last)["event"].to_list() == [3]


def test_a_graph_nodes_graph_is_the_upper_half_of_its_id() -> None:
    sketch = Sketch()
    sketch.operation(KERNEL, 0, 1, process=ME, graph_node=21 << 32 | 5)
    assert sketch.trace().operations["graph"].to_list() == [21]
