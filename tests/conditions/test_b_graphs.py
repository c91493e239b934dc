"""Conditions of CUDA graphs: what is recorded of a replay, and which step it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.diff import Options, diff
from bubblefinder.report.build import analyze_trace
from tests.conditions.ask import ask, codes, device_of, ledger, warnings
from tests.loops import US, Graph, Loop

if TYPE_CHECKING:
    from bubblefinder.report.model import Report

REPLAYS = """
api      | {launch}.....{launch}........
gpu0 s7  | ..aa.b...aa.b..
G = graph 5 a b via {api}
"""
PIECES = [Graph(20 + number, ("qkv", "norm", "mlp")) for number in range(12)]


def piecewise(steps: int) -> tuple[Report, Loop]:
    """A decode loop whose step is twelve graphs with attention run eagerly between them."""
    loop = Loop()
    for _ in range(steps):
        loop.spend(300)
        loop.firsts.append(loop.upload())
        for graph in PIECES:
            loop.replay(graph)
            loop.kernel("flash_attn", 8)
        loop.read()
    return analyze_trace(loop.sketch.trace()), loop


def test_b1_whole_graphs_have_no_measured_inside() -> None:
    report = ask("api | G...G...\ngpu0 s7 | .GGG.GGG\nG = graph 5", repeat=10)
    device = device_of(report)
    assert device.replays == 20
    assert device.intra_graph_ns is None
    assert report.steps.bubble_share.intra_graph is None
    assert report.steps.bubble_share.total is None
    note = next(note for note in report.quality if note.code == "capture-mode-graph")
    assert "node mode measures them" in note.message


@pytest.mark.parametrize("lost", [1, 5, 50])
def test_b2_far_more_launches_than_recorded_work_is_no_idle_gpu(lost: int) -> None:
    report = ask(f"""
        api      | G..{"L." * lost}G...
        gpu0 s7  | .g.{".." * lost}.g..
        G = graph 5 g
        L = cudaGraphLaunch_v10000
    """)
    assert device_of(report).idle_ns == 1_000
    assert codes(report)["launches-without-work"] == lost
    assert "launches-without-work" in warnings(report)


def test_b3_one_launch_has_many_kernels_and_counts_once() -> None:
    report = ask("""
        api      | G...........G..........
        gpu0 s7  | .aaa.bb.cc...aaa.bb.cc.
        G = graph 5 a b c
    """)
    device = device_of(report)
    assert (device.replays, device.launches.seen) == (2, 2)
    assert ledger(report) == {"busy": 14, "intra_graph": 4, "host_late": 2, "launching": 1}


@pytest.mark.parametrize(
    "api",
    ["cudaGraphLaunch", "cudaGraphLaunch_v10000", "cudaGraphLaunch_ptsz_v10000", "cuGraphLaunch", "cuGraphLaunch_ptsz"],
)
def test_b4_graph_launches_are_known_by_every_name(api: str) -> None:
    report = ask(REPLAYS.format(launch="G", api=api))
    assert report.trace.capture_mode == "node"
    assert device_of(report).launches.recorded == 2
    lost = ask(f"api | A.L.B\ngpu0 s7 | .A..B\nL = {api}")
    assert report.trace.capture_mode == "node"
    assert lost.trace.capture_mode == "unseen"


def test_b5_replays_lost_to_full_buffers_are_not_idle_time() -> None:
    loop = Loop(node_mode=False)
    big = Graph(6, ("work",) * 100)
    for number in range(60):
        loop.replay(big, recorded=number % 20 == 0)
        loop.spend(900)
        loop.read()
    report = analyze_trace(loop.sketch.trace())
    device = device_of(report)
    assert (device.launches.seen, device.launches.recorded) == (60, 3)
    assert device.unrecorded_ns is not None
    assert device.idle_ns is not None
    assert device.unrecorded_ns > device.idle_ns
    assert "launches-without-work" in warnings(report)


def test_b7_a_step_is_what_was_launched_inside_its_mark() -> None:
    report = ask(
        """
        nvtx     | [step][step][step][step]..............................
        api      | AB....CD....EF....GH..................................
        gpu0 s7  | .AAAAAABBBBBBCCCCCCDDDDDDEEEEEEFFFFFFGGGGGGHHHHHH
        A = graph 1
        B = graph 2
        C = graph 1
        D = graph 2
        E = graph 1
        F = graph 2
        G = graph 1
        H = graph 2
        """,
        step_by="nvtx:step",
    )
    assert report.steps.method == "nvtx"
    assert [row.duration_ns for row in report.steps.rows if row.excluded is None] == [12_000] * 3


def test_b8_preparation_before_each_replay_is_idle_between_graphs() -> None:
    report = ask(
        """
        nvtx     | [decode_step                ]
        api      | ........C.G..................
        gpu0 s7  | .........C..aaaa.bbb.........
        G = graph 5 a b
        C = copy HtoD 64 pinned
        """,
        repeat=8,
    )
    step = report.steps.per_step
    assert (step["duration"].p50, step["intra_graph"].p50) == (29_000, 1_000)
    assert (step["host_late"].p50, step["launching"].p50, step["queued"].p50) == (17_000, 2_000, 1_000)


def test_b9_work_span_and_launch_time_of_a_replay_are_three_numbers() -> None:
    report = ask("""
        api      | GGGGGG.................
        gpu0 s7  | ......aaaa.bbb..dd.....
        gpu0 s8  | .......ccc..cc.........
        G = graph 5 a b c*2 d
    """)
    device = device_of(report)
    assert (device.busy_ns, device.intra_graph_ns, device.span_ns) == (9_000, 3_000, 12_000)


def test_b10_pieces_of_a_step_are_one_step() -> None:
    report, loop = piecewise(steps=24)
    assert report.steps.method != "none"
    begun = {row.start_ns for row in report.steps.rows if row.excluded in (None, "tail")}
    assert set(loop.firsts[2:]) <= begun
    durations = [row.duration_ns for row in report.steps.rows if row.excluded is None]
    assert min(durations) > 300 * US


def test_b11_work_of_a_replay_belongs_to_the_range_around_its_launch() -> None:
    report = ask(
        """
        nvtx     | [decode_step                            ]
        nvtx     | .....[read_lengths     ].................
        api      | D.V..CCCCCCCCCCCCCCCCCC.................
        gpu0 s7  | DDDVVVVVVVVVVVVVVVVVVVC.................
        D = graph 1
        V = graph 2
        C = copy DtoH 8 pageable
        """,
        repeat=8,
    )
    assert {finding.site.nvtx for finding in report.findings if finding.site.api} == {"read_lengths"}
    assert report.steps.count == 7


def test_b13_a_replay_depends_on_its_launch_call() -> None:
    report = ask(
        """
        nvtx     | [decode_step                            ]
        api      | D.V..CCCCCCCCCCCCCCCCCC.................
        gpu0 s7  | DDDVVVVVVVVVVVVVVVVVVVC.................
        D = graph 1
        V = graph 2
        C = copy DtoH 8 pageable
        """,
        repeat=8,
    )
    read = next(finding for finding in report.findings if finding.site.api)
    assert read.step_after_ns is not None
    assert 22_000 <= read.step_after_ns < 40_000


def test_b14_programmatic_launches_overlap_their_predecessor() -> None:
    report = ask("""
        api      | G..............
        gpu0 s7  | .aaaa...ccc....
        gpu0 s7  | ...bbbb..dddd..
        G = graph 5 a b c d
    """)
    assert ledger(report) == {"busy": 11, "intra_graph": 1}


def test_b15_node_and_graph_captures_are_not_compared() -> None:
    picture = """
        nvtx     | [decode_step  ]
        api      | G..............
        gpu0 s7  | {run}
    """
    nodes = ask(picture.format(run=".aaa.bbb.......") + "G = graph 5 a b", repeat=8)
    blocks = ask(picture.format(run=".GGGGGGG.......") + "G = graph 5", repeat=8)
    assert (nodes.trace.capture_mode, blocks.trace.capture_mode) == ("node", "graph")
    (reason,) = diff([nodes], [blocks], Options()).refusals
    assert "graph and node mode" in reason
