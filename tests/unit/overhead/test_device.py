from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.overhead.device import NODE_KINDS, SEAM_CLASSES, added_to, graph_nodes, work_of
from bubblefinder.overhead.model import Cost, Costs
from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.model import IdleClass
from bubblefinder.trace.model import KERNEL, MEMCPY, MEMSET
from bubblefinder.trace.sketch import Sketch, process_key, thread_key

if TYPE_CHECKING:
    from bubblefinder.overhead.device import Work
    from bubblefinder.timeline.model import Timeline

PROCESS = process_key(7)


def one(value: float) -> Cost:
    return Cost(value, value, value)


def graph_of_every_kind() -> Timeline:
    """A launch of kernel, kernel, early kernel, kernel beside it, copy and two memsets; then eager work."""
    sketch = Sketch()
    place = {"process": PROCESS, "correlation": sketch.call("cudaGraphLaunch", 0, 50, thread_key(PROCESS, 1))}
    nodes = [
        (KERNEL, 100, 200, {}),
        (KERNEL, 210, 300, {}),
        (KERNEL, 290, 400, {}),
        (KERNEL, 350, 420, {"stream": 14}),
        (MEMCPY, 430, 440, {"bytes": 8}),
        (MEMSET, 450, 460, {"bytes": 8}),
        (MEMSET, 470, 480, {"bytes": 65_536}),
    ]
    for number, (kind, start, end, more) in enumerate(nodes):
        sketch.operation(kind, start, end, **place, **({"stream": 7} | more), graph_node=5 << 32 | number)
    eager = {"process": PROCESS, "correlation": sketch.call("cudaLaunchKernel", 60, 70, thread_key(PROCESS, 1))}
    sketch.operation(KERNEL, 600, 700, **eager)
    return build_timeline(sketch.trace())


def work() -> Work:
    return work_of(graph_of_every_kind(), 0)


def test_every_node_has_its_kind() -> None:
    nodes = graph_nodes(graph_of_every_kind(), 0)
    kinds = [NODE_KINDS[kind].removesuffix("_node") for kind in nodes["node_kind"]]
    assert kinds == ["kernel", "kernel", "dependent", "branch", "copy", "memset", "kernel"]


def test_nodes_are_counted_by_block_and_kind() -> None:
    counts = dict(zip(NODE_KINDS, work().nodes.T.tolist(), strict=True))
    once = {kind: [1, 0] for kind in NODE_KINDS}
    assert counts == once | {"kernel_node": [3, 0]}


def test_blocks_and_seams() -> None:
    done = work()
    assert done.starts.tolist() == [100, 600]
    assert done.ends.tolist() == [480, 700]
    assert done.idle_ns.tolist() == [10 + 10 + 10 + 10, 0]
    assert done.by_replay.tolist() == [False, False]
    seam = dict(zip(SEAM_CLASSES, done.seam_ns[1].tolist(), strict=True))
    assert seam == dict.fromkeys(SEAM_CLASSES, 0) | {IdleClass.QUEUED: 120}


def test_costs_come_out_of_gaps_and_kernels_in_the_measured_part() -> None:
    added = added_to(work(), Costs(kernel_node=one(4), copy_node=one(8), gap_share=one(0.75)))
    assert added.gaps_ns.tolist() == pytest.approx([0.75 * 20, 0])
    assert added.busy_ns.tolist() == pytest.approx([0.25 * 20, 0])
    assert added.unplaced_ns.tolist() == [0, 0]


def test_what_the_gaps_do_not_hold_is_unplaced() -> None:
    added = added_to(work(), Costs(memset_node=one(100), gap_share=one(1)))
    assert added.gaps_ns.tolist() == [40, 0]
    assert added.unplaced_ns.tolist() == [60, 0]


def test_an_eager_operation_has_its_own_cost() -> None:
    added = added_to(work(), Costs(eager_operation=one(3), replay=one(50)))
    assert added.seam_ns.tolist() == [0, 3]
