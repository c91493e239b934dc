from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import given

from bubblefinder.errors import CannotAnswerError
from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import Options, analyze_trace, report_of
from bubblefinder.timeline.model import INTER_CLASSES, LEDGER_CLASSES
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.model import QualityNote, Trace
from bubblefinder.trace.sketch import Sketch
from tests.captures import captures
from tests.loops import DRAFT, EXTEND, VERIFY, Loop

if TYPE_CHECKING:
    from bubblefinder.report.model import Report, StepRow

# Six steps of ten characters: a graph of two nodes with one character between them, then six idle ones.
STEP = f"""
    nvtx | {"[step    ]" * 6}
    api  | {"G........." * 6}
    gpu0 | {"..aa.b...." * 6}
    G = graph a b
"""


def loop(steps: int = 10, *, node_mode: bool = True, gpus: int = 1) -> Trace:
    sketch = Sketch()
    for gpu in range(gpus):
        one = Loop(sketch, pid=1001 + gpu, gpu=gpu, seed=gpu, node_mode=node_mode)
        for _ in range(steps):
            one.step()
    return sketch.trace()


def idle(row: StepRow) -> int:
    return sum(getattr(row, f"{name}_ns") or 0 for name in LEDGER_CLASSES)


@pytest.fixture(scope="module")
def report() -> Report:
    return analyze_trace(loop())


def test_each_stage_of_an_analysis_runs_once_for_all_its_reports() -> None:
    trace, told = draw(STEP), list[str]()
    analysis = Analysis(trace, progress=told.append)
    assert analysis.timeline.operations.height
    assert report_of(analysis) == report_of(analysis) == analyze_trace(trace)
    assert [name for name in told if told.count(name) == 1] == ["timeline", "steps", "causes", "what if"]


def test_every_row_sums_to_its_duration_and_the_rows_tile_the_span(report: Report) -> None:
    assert all(idle(row) == row.duration_ns for row in report.steps.rows)
    (device,) = report.devices
    assert report.steps.rows[0].start_ns == device.start_ns
    assert sum(row.duration_ns for row in report.steps.rows) == device.span_ns


def test_the_devices_ledger_is_the_sum_of_its_rows(report: Report) -> None:
    (device,) = report.devices
    assert device.busy_ns == sum(row.busy_ns for row in report.steps.rows)
    assert device.intra_graph_ns == sum(row.intra_graph_ns or 0 for row in report.steps.rows)
    for name in INTER_CLASSES:
        mine = getattr(device.inter_graph, f"{name}_ns")
        assert mine == sum(getattr(row, f"{name}_ns") for row in report.steps.rows)
    assert device.idle_ns == device.span_ns - device.busy_ns


def test_a_drawn_loop_has_the_figures_that_can_be_read_off_it() -> None:
    report = analyze_trace(draw(STEP))
    steps = report.steps
    assert (steps.count, steps.excluded) == (5, {"tail": 1})
    # Of the six idle characters, four pass before the next launch begins, in one it runs, one more until it works.
    middle = {
        name: steps.per_step[name].p50
        for name in ("duration", "busy", "intra_graph", "host_late", "launching", "queued")
    }
    assert middle == {
        "duration": 100_000,
        "busy": 30_000,
        "intra_graph": 10_000,
        "host_late": 40_000,
        "launching": 10_000,
        "queued": 10_000,
    }
    assert (steps.bubble_share.intra_graph, steps.bubble_share.inter_graph, steps.bubble_share.total) == (0.1, 0.6, 0.7)


def test_statistics_are_numpys_over_the_decode_steps(report: Report) -> None:
    rows = [row.duration_ns for row in report.steps.rows if row.excluded is None]
    found = report.steps.per_step["duration"]
    assert report.steps.count == len(rows) == 9
    assert (found.p50, found.p95) == (np.percentile(rows, 50), np.percentile(rows, 95))
    assert (found.min, found.max) == (min(rows), max(rows))
    assert found.mean == pytest.approx(float(np.mean(rows)))


def test_bubble_shares_are_totals_over_totals(report: Report) -> None:
    rows = [row for row in report.steps.rows if row.excluded is None]
    duration = sum(row.duration_ns for row in rows)
    inter = sum(getattr(row, f"{name}_ns") for row in rows for name in INTER_CLASSES)
    intra = sum(row.intra_graph_ns or 0 for row in rows)
    share = report.steps.bubble_share
    assert (share.inter_graph, share.intra_graph) == (inter / duration, intra / duration)
    assert share.total == (inter + intra) / duration


def test_profiler_and_unrecorded_time_is_no_bubble() -> None:
    trace = draw(STEP + "    profiler | ....................................PPP\n")
    with_it, without = analyze_trace(trace), analyze_trace(draw(STEP))
    steps, before = with_it.steps, without.steps
    assert sum(row.profiler_ns or 0 for row in steps.rows) == 30_000
    assert steps.bubble_share.inter_graph == pytest.approx((before.bubble_share.inter_graph or 0) - 30_000 / 500_000)
    (device,) = with_it.devices
    assert device.idle_ns == device.span_ns - device.busy_ns - 30_000


def test_in_graph_mode_the_inside_is_null_never_zero() -> None:
    report = analyze_trace(loop(node_mode=False))
    (device,) = report.devices
    assert device.intra_graph_ns is None
    assert {row.intra_graph_ns for row in report.steps.rows} == {None}
    assert report.steps.per_step["intra_graph"].p50 is None
    share = report.steps.bubble_share
    assert (share.intra_graph, share.total) == (None, None)
    assert share.inter_graph is not None


def test_without_graphs_all_idle_time_lies_between_operations() -> None:
    eager = Loop()
    for _ in range(8):
        eager.spend(300)
        eager.upload()
        for name in ("norm", "qkv", "attention", "mlp"):
            eager.kernel(name, 8)
        eager.read()
    share = analyze_trace(eager.sketch.trace()).steps.bubble_share
    assert share.intra_graph is None
    assert share.total == share.inter_graph


def test_unseen_graph_work_makes_every_share_unknown() -> None:
    report = analyze_trace(draw("api | K.G.K.G.K.G\ngpu0 | .K...K...K\nG = cudaGraphLaunch"))
    (device,) = report.devices
    assert report.trace.capture_mode == "unseen"
    assert (device.idle_ns, device.profiler_ns, device.unrecorded_ns) == (None, None, None)
    assert {getattr(device.inter_graph, f"{name}_ns") for name in INTER_CLASSES} == {None}
    assert (report.steps.bubble_share.inter_graph, report.steps.bubble_share.total) == (None, None)
    assert report.findings == []


def test_the_lowest_rank_is_reported_unless_another_is_asked_for() -> None:
    trace = loop(6, gpus=2)
    reports = [analyze_trace(trace, asked) for asked in (Options(), Options(gpu=1), Options(pid=1002))]
    assert [(r.steps.gpu, r.steps.pid) for r in reports] == [(0, 1001), (1, 1002), (1, 1002)]
    assert [(d.gpu, d.pid, d.count) for d in reports[0].steps.by_device] == [(0, 1001, 5), (1, 1002, 5)]
    assert reports[0].steps.by_device[1].per_step == reports[1].steps.per_step
    assert {row.gpu for row in reports[0].steps.rows} == {0, 1}


@pytest.mark.parametrize("asked", [{"gpu": 7}, {"pid": 7}, {"gpu": 0, "pid": 1002}])
def test_a_gpu_or_process_without_operations_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(CannotAnswerError) as caught:
        analyze_trace(loop(4, gpus=2), Options(**asked))
    assert "GPU 1 with process 1002" in caught.value.hint


def test_steps_may_be_selected_and_keep_their_index() -> None:
    report = analyze_trace(loop(), Options(steps=(2, 5)))
    assert report.steps.count == 3
    assert report.steps.excluded == {"tail": 1}
    assert [row.index for row in report.steps.rows if row.excluded is None] == [2, 3, 4]
    with pytest.raises(CannotAnswerError):
        analyze_trace(loop(), Options(steps=(40, 50)))


def test_a_capture_without_steps_still_has_its_ledger() -> None:
    report = analyze_trace(draw("api | A..B\ngpu0 | .A...B"))
    assert (report.steps.method, report.steps.count, report.steps.rows) == ("none", 0, [])
    assert (report.steps.gpu, report.steps.bubble_share.total) == (None, None)
    (device,) = report.devices
    assert (device.span_ns, device.busy_ns, device.idle_ns) == (50_000, 20_000, 30_000)
    assert "no-steps" in [note.code for note in report.quality]


def test_roles_have_their_lengths(report: Report) -> None:
    found = {role.role: role for role in report.steps.roles}
    assert list(found) == ["draft", "verify", "draft-extend"]
    for role, graph in (("draft", DRAFT), ("verify", VERIFY), ("draft-extend", EXTEND)):
        assert (found[role].replays_per_step, found[role].nodes) == (1, len(graph.kernels))
        assert found[role].intra_graph_p50_ns == (len(graph.kernels) - 1) * 1_000


def test_the_report_can_be_encoded_and_has_no_nan(report: Report) -> None:
    text = msgspec.json.encode(report, order="sorted").decode()
    assert "NaN" not in text
    assert msgspec.json.decode(text)["schema"] == "bubblefinder.report/1"


def test_analysing_twice_gives_the_same_report() -> None:
    trace = loop(6, gpus=2)
    assert analyze_trace(trace) == analyze_trace(trace)


def test_the_traces_notes_are_kept(report: Report) -> None:
    noted = replace(loop(4), notes=(QualityNote("made-up", "warn", "It is made up.", 3),))
    assert ("made-up", 3) in [(note.code, note.count) for note in analyze_trace(noted).quality]
    assert "made-up" not in [note.code for note in report.quality]


@given(captures())
def test_the_rows_of_any_capture_sum_up(trace: Trace) -> None:
    report = analyze_trace(trace)
    measured = [row for row in report.steps.rows if row.host_late_ns is not None]
    assert [idle(row) for row in measured] == [row.duration_ns for row in measured]
