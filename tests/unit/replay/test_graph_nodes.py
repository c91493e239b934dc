from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.replay.graph_nodes import NODE_KINDS, graph_nodes
from bubblefinder.timeline.build import build_timeline
from bubblefinder.trace.model import KERNEL, MEMCPY, MEMSET
from bubblefinder.trace.sketch import Sketch, process_key, thread_key

if TYPE_CHECKING:
    from bubblefinder.timeline.model import Timeline

PROCESS = process_key(7)


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


def test_every_node_has_its_kind() -> None:
    nodes = graph_nodes(graph_of_every_kind(), np.array([0]))
    kinds = [NODE_KINDS[kind].removesuffix("_node") for kind in nodes["node_kind"]]
    assert kinds == ["kernel", "kernel", "dependent", "branch", "copy", "memset", "kernel"]
