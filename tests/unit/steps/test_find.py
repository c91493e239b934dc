from __future__ import annotations

import polars as pl
import pytest

from bubblefinder.errors import CannotAnswerError, UsageError
from bubblefinder.timeline.rank import Rank
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.sketch import Sketch
from tests import simulate
from tests.captures import moved, relabelled
from tests.loops import DRAFT, EXTEND, SPECULATIVE, VERIFY, Graph, Loop, disturbed
from tests.simulate import Machine, nodes
from tests.unit.steps.found import WITH_AND_WITHOUT, begins, reasons, step_begins, steps_of, told_roles


@WITH_AND_WITHOUT
@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
def test_a_regular_loop(nvtx: bool, node_mode: bool) -> None:
    loop = Loop(node_mode=node_mode)
    for _ in range(10):
        loop.step()
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert (steps.method, steps.confidence) == ("nvtx" if nvtx else "cadence", "high")
    assert begins(steps) == loop.firsts
    assert reasons(steps) == [None] * 9 + ["tail"]
    assert steps.replays["role"].to_list() == told_roles(nvtx or node_mode) * 10
    assert steps.replays["position"].to_list() == [0, 1, 2] * 10


@WITH_AND_WITHOUT
@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([0] * 5 + [1] * 5, id="switching once"),
        pytest.param([0, 1] * 6, id="alternating"),
        pytest.param([0, 1, 1, 0, 2, 2, 1, 0, 0, 1, 2, 0], id="at random"),
        pytest.param([0] * 9 + [3], id="new at the end"),
    ],
)
def test_graphs_captured_for_another_batch_size_play_the_same_role(
    nvtx: bool, node_mode: bool, batches: list[int]
) -> None:
    loop = Loop(node_mode=node_mode)
    for batch in batches:
        loop.step([graph.at(batch) if batch else graph for graph in SPECULATIVE])
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert begins(steps) == loop.firsts
    assert steps.replays["role"].to_list() == told_roles(nvtx or node_mode) * len(batches)


@WITH_AND_WITHOUT
@pytest.mark.parametrize(
    "batches", [[0] * 12, [0] * 6 + [2] * 6, [0, 2] * 6], ids=["one size", "switching", "alternating"]
)
def test_one_graph_a_step(nvtx: bool, batches: list[int]) -> None:
    loop = Loop()
    for batch in batches:
        loop.step([VERIFY.at(batch) if batch else VERIFY])
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert begins(steps) == loop.firsts
    assert set(steps.replays["role"]) == {"decode"}


@WITH_AND_WITHOUT
def test_a_prefill_in_between_is_labelled(nvtx: bool) -> None:
    loop = Loop()
    for number in range(12):
        if number == 6:
            loop.prefill()
        loop.step()
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert reasons(steps).count("prefill") == 1
    assert reasons(steps).count(None) == 11
    assert step_begins(steps) == loop.firsts


@WITH_AND_WITHOUT
@pytest.mark.parametrize("missing", [DRAFT, VERIFY, EXTEND], ids=["draft", "verify", "extend"])
def test_a_missing_launch_costs_no_step(nvtx: bool, missing: Graph) -> None:
    loop = Loop()
    for number in range(12):
        loop.step([graph for graph in SPECULATIVE if number != 5 or graph is not missing])
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert begins(steps) == loop.firsts
    roles = steps.replays["role"].to_list()
    assert [roles.count(role) for role in ("draft", "verify", "draft-extend")] == [
        11 if missing is graph else 12 for graph in SPECULATIVE
    ]


@WITH_AND_WITHOUT
@pytest.mark.parametrize("doubled", [DRAFT, VERIFY, EXTEND], ids=["draft", "verify", "extend"])
def test_a_doubled_launch_makes_no_step(nvtx: bool, doubled: Graph) -> None:
    loop = Loop()
    for number in range(12):
        loop.step([graph for graph in SPECULATIVE for _ in range(2 if number == 5 and graph is doubled else 1)])
    assert begins(steps_of(loop.sketch.trace(), nvtx=nvtx)) == loop.firsts


@WITH_AND_WITHOUT
@pytest.mark.parametrize("lost", SPECULATIVE, ids=["draft", "verify", "extend"])
def test_a_lost_record_costs_no_step(nvtx: bool, lost: Graph) -> None:
    loop = Loop()
    for number in range(12):
        loop.step(lost=lost if number == 5 else None)
    assert begins(steps_of(loop.sketch.trace(), nvtx=nvtx)) == loop.firsts


@WITH_AND_WITHOUT
def test_a_warm_up_is_no_step(nvtx: bool) -> None:
    loop = Loop()
    for graph in (VERIFY, VERIFY, VERIFY, DRAFT, DRAFT, EXTEND):
        loop.replay(graph)
        loop.spend(900)
    for _ in range(12):
        loop.step()
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert begins(steps)[-11:] == loop.firsts[-11:]
    assert reasons(steps).count(None) in {10, 11}
    assert reasons(steps)[0] is not None


@WITH_AND_WITHOUT
def test_a_first_cycle_that_stands_out_is_set_aside(nvtx: bool) -> None:
    loop = Loop()
    for number in range(12):
        loop.step()
        if number == 0:
            loop.spend(800)
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert reasons(steps) == ["capture_start"] + [None] * 10 + ["tail"]


@WITH_AND_WITHOUT
def test_a_worker_thread_that_launches_part_of_the_step(nvtx: bool) -> None:
    loop = Loop()
    for _ in range(10):
        loop.step(extend_thread=2)
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert begins(steps) == loop.firsts
    assert steps.replays["role"].to_list() == ["draft", "verify", "draft-extend"] * 10


@WITH_AND_WITHOUT
def test_two_ranks_on_two_gpus(nvtx: bool) -> None:
    sketch = Sketch()
    ranks = [Loop(sketch, pid=1001 + gpu, gpu=gpu, seed=gpu, now=1_000_000 + 300_000 * gpu) for gpu in (0, 1)]
    for _ in range(10):
        for rank in ranks:
            rank.step()
    steps = steps_of(sketch.trace(), nvtx=nvtx)
    assert [begins(steps, gpu=rank.gpu) for rank in ranks] == [rank.firsts for rank in ranks]


@pytest.mark.parametrize("seed", range(5))
def test_seams_of_nearly_equal_gaps_are_all_cut_at_one_place(seed: int) -> None:
    """The host is ahead, so all gaps of a seam are about as wide; one of them is the widest by chance."""
    machine = Machine(seed=seed, jitter=0.3)
    host, verify = machine.host(), simulate.Graph(3, nodes("attention", "mlp", us=20) * 40)
    before = host.record()
    for _ in range(40):
        host.work(100)
        for name in ("gather", "positions", "indices", "slots", "mask"):
            host.kernel(name, 2, after=host.queued_until() + machine.ns(2.8))
        host.replay(verify)
        host.kernel("argmax", 3)
        host.download(8)
        host.wait_for(before)
        before = host.record()
    steps = steps_of(machine.trace())
    cut = {host.work_starts.index(start) % 87 for start in step_begins(steps)[1:]}
    assert len(step_begins(steps)) == 40
    assert len(cut) == 1


@WITH_AND_WITHOUT
def test_two_processes_on_one_gpu(nvtx: bool) -> None:
    sketch = Sketch()
    tenants = [Loop(sketch, pid=1001), Loop(sketch, pid=1002, seed=2, now=1_350_000)]
    for _ in range(10):
        for tenant in tenants:
            tenant.step()
    steps = steps_of(sketch.trace(), nvtx=nvtx)
    # The other's work hides part of the seams, so the widest gap may be ended by the upload or by the draft.
    for tenant in tenants:
        found = begins(steps, process=tenant.process)
        assert len(found) == len(tenant.firsts)
        assert all(first <= cut <= first + 150_000 for first, cut in zip(tenant.firsts, found, strict=True))


@WITH_AND_WITHOUT
@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
def test_piecewise_graphs_are_pieces_of_one_step(nvtx: bool, node_mode: bool) -> None:
    loop = Loop(node_mode=node_mode)
    for _ in range(10):
        loop.spend(400)
        begin = loop.now
        loop.firsts.append(loop.upload())
        for layer in range(24):
            loop.replay(Graph(20 + layer, ("qkv", "rope")))
            loop.kernel("attention", 15)
        loop.read()
        loop.range("decode_step", begin)
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert begins(steps) == loop.firsts


@WITH_AND_WITHOUT
def test_an_eager_program_steps_by_its_sequence(nvtx: bool) -> None:
    loop = Loop()
    for _ in range(10):
        loop.spend(300)
        begin = loop.now
        loop.firsts.append(loop.upload())
        for _layer in range(12):
            for name in ("norm", "qkv", "attention", "mlp"):
                loop.kernel(name, 8)
        loop.kernel("sample", 5)
        loop.read()
        loop.range("decode_step", begin)
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert steps.method == ("nvtx" if nvtx else "sequence")
    assert begins(steps) == loop.firsts


@pytest.mark.parametrize("seed", range(4))
def test_steps_survive_noise_of_the_host(seed: int) -> None:
    loop = Loop(jitter=0.3, seed=seed)
    for _ in range(30):
        loop.step()
    assert begins(steps_of(loop.sketch.trace(), nvtx=False)) == loop.firsts


@pytest.mark.parametrize(
    "mark",
    [
        "scheduler.run_batch",
        "execute_context_0(0)_generation_1(1)",
        "[Executor] _forward_step 17: 0 ctx reqs, 1 gen reqs",
    ],
)
def test_known_marks_are_taken(mark: str) -> None:
    loop = Loop()
    for _ in range(8):
        loop.step(mark=mark)
    steps = steps_of(loop.sketch.trace())
    assert steps.method == "nvtx"
    assert begins(steps) == loop.firsts


def test_marks_whose_texts_carry_a_step_number_still_mark_steps() -> None:
    loop = Loop()
    for number in range(8):
        loop.step(mark=f"[Executor] _forward_step {number}: 0 ctx reqs, {number % 3} gen reqs")
    steps = steps_of(loop.sketch.trace())
    assert steps.method == "nvtx"
    assert begins(steps) == loop.firsts


def test_a_range_that_does_not_come_once_a_cycle_is_no_mark() -> None:
    loop = Loop()
    for number in range(12):
        loop.step(mark="sometimes" if number in {2, 3, 7} else None)
    steps = steps_of(loop.sketch.trace())
    assert steps.method == "cadence"
    assert begins(steps) == loop.firsts


def test_a_mark_may_be_asked_for() -> None:
    loop = Loop()
    for number in range(12):
        loop.step(mark="odd" if number % 2 else "even")
    steps = steps_of(loop.sketch.trace(), step_by="nvtx:^odd$")
    assert (steps.method, steps.mark) == ("nvtx", "^odd$")
    assert begins(steps) == loop.firsts[1::2]


def test_a_kernel_may_be_asked_for() -> None:
    loop = Loop()
    for _ in range(6):
        loop.step()
    steps = steps_of(loop.sketch.trace(), step_by="kernel:^embed$")
    assert (steps.method, steps.confidence) == ("kernel", "medium")
    assert reasons(steps) == ["head", *[None] * 5, "tail"]


def test_a_kernel_that_comes_often_in_a_graph_is_doubted() -> None:
    loop = Loop()
    for _ in range(6):
        loop.step()
    steps = steps_of(loop.sketch.trace(), step_by="kernel:^attn$")
    assert (len(begins(steps)), steps.confidence) == (90, "low")
    assert "prefill" not in reasons(steps)


@pytest.mark.parametrize("step_by", ["nonsense", "kernel", "kernel:", "cadence:x", "kernel:(", "nvtx:("])
def test_a_method_that_is_none_is_a_usage_error(step_by: str) -> None:
    loop = Loop()
    for _ in range(4):
        loop.step()
    with pytest.raises(UsageError) as caught:
        steps_of(loop.sketch.trace(), step_by=step_by)
    assert caught.value.hint or "regular expression" in str(caught.value)


@pytest.mark.parametrize("step_by", ["nvtx:nothing", "kernel:nothing"])
def test_what_was_asked_for_and_is_not_there_is_said(step_by: str) -> None:
    loop = Loop()
    for _ in range(4):
        loop.step()
    with pytest.raises(CannotAnswerError):
        steps_of(loop.sketch.trace(), step_by=step_by)


@pytest.mark.parametrize(
    "picture",
    ["gpu0 | AAA.BB..CC", "api | G\ngpu0 | .GG\nG = graph", "gpu0 | A"],
    ids=["different kernels", "one replay", "one kernel"],
)
def test_without_repetition_there_are_no_steps(picture: str) -> None:
    steps = steps_of(draw(picture))
    assert (steps.method, len(steps.windows)) == ("none", 0)
    assert [note.code for note in steps.notes] == ["no-steps"]


@pytest.mark.parametrize("count", [2, 3])
def test_a_few_cycles_are_found_with_less_confidence(count: int) -> None:
    loop = Loop()
    for _ in range(count):
        loop.step()
    steps = steps_of(loop.sketch.trace(), nvtx=False)
    assert begins(steps) == loop.firsts
    assert steps.confidence != "high"


@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
def test_a_mark_that_covers_the_work_beats_a_cadence_that_is_unsure(node_mode: bool) -> None:
    loop = Loop(node_mode=node_mode, seed=5)
    mask, plain = Graph(30, ("mask",) * 4), Graph(9, VERIFY.kernels, 30)
    for _ in range(24):
        sometimes = [mask] if loop.random.random() < 0.3 else []
        loop.step([plain] if loop.random.random() < 0.2 else [DRAFT, VERIFY, *sometimes, EXTEND])
    steps = steps_of(loop.sketch.trace())
    assert steps.method == "nvtx"
    assert begins(steps) == loop.firsts


@WITH_AND_WITHOUT
def test_a_graph_launched_several_times_a_step(nvtx: bool) -> None:
    loop = Loop()
    for _ in range(10):
        loop.step([DRAFT, DRAFT, DRAFT, VERIFY, EXTEND])
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert begins(steps) == loop.firsts
    assert steps.replays["role"].to_list() == ["draft", "draft", "draft", "verify", "draft-extend"] * 10


@WITH_AND_WITHOUT
def test_a_capture_that_starts_in_the_middle_of_a_step_has_a_head(nvtx: bool) -> None:
    loop = Loop()
    loop.replay(VERIFY)
    loop.replay(EXTEND)
    loop.read()
    for _ in range(10):
        loop.step()
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert reasons(steps) == ["head"] + [None] * 9 + ["tail"]
    assert begins(steps) == loop.firsts
    assert steps.replays["role"].to_list()[:2] == ["verify", "draft-extend"]


@WITH_AND_WITHOUT
def test_an_optional_graph_leaves_the_steps_as_they_are(nvtx: bool) -> None:
    loop = Loop(seed=6)
    for _ in range(20):
        loop.step(SPECULATIVE if loop.random.random() < 0.6 else (DRAFT, VERIFY))
    assert begins(steps_of(loop.sketch.trace(), nvtx=nvtx)) == loop.firsts


@WITH_AND_WITHOUT
@pytest.mark.parametrize("pieces", [2, 4, 8])
def test_pieces_that_all_look_alike_make_one_step(nvtx: bool, pieces: int) -> None:
    loop = Loop()
    for _ in range(10):
        loop.step([Graph(20 + piece, ("qkv", "attention", "mlp")) for piece in range(pieces)])
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert begins(steps) == loop.firsts
    assert set(steps.replays["role"]) == {"decode"}


@pytest.mark.parametrize("seed", range(24))
def test_steps_survive_whatever_disturbs_a_loop(seed: int) -> None:
    loop = disturbed(seed)
    trace = loop.sketch.trace()
    assert step_begins(steps_of(trace)) == loop.firsts
    unmarked = steps_of(trace, nvtx=False)
    found = set(step_begins(unmarked)) & set(loop.firsts)
    assert unmarked.confidence == "low" or len(found) >= 0.9 * len(loop.firsts)


def test_the_kernels_of_prefills_are_no_steps_of_a_loop_of_graphs() -> None:
    # Too irregular for a cadence; the kernels of the three prefills repeat, but say nothing of the steps.
    loop = Loop(node_mode=False, seed=1)
    for number in range(40):
        some = [graph.at(loop.random.randrange(9)) for graph in SPECULATIVE if loop.random.random() < 0.6]
        loop.step(some or [VERIFY])
        if number % 13 == 6:
            loop.prefill(150, 40)
    trace = loop.sketch.trace()
    unmarked = steps_of(trace, nvtx=False)
    assert (unmarked.method, unmarked.confidence) == ("cadence", "high")
    assert len(step_begins(unmarked)) == 40
    assert reasons(unmarked).count("prefill") == 3
    assert steps_of(trace, nvtx=False, step_by="sequence").method == "sequence"
    assert step_begins(steps_of(trace)) == loop.firsts


def test_a_few_marks_may_differ_from_the_cadence_by_one() -> None:
    loop = Loop(jitter=0.3, seed=44)
    for number in range(9):
        loop.step([VERIFY] if number == 4 else SPECULATIVE)
    steps = steps_of(loop.sketch.trace())
    assert steps.method == "nvtx"
    assert begins(steps) == loop.firsts


@WITH_AND_WITHOUT
@pytest.mark.parametrize("seed", range(6))
def test_other_times_and_other_ids_give_the_same_steps(nvtx: bool, seed: int) -> None:
    trace = disturbed(seed).sketch.trace()
    steps, later, renamed = (steps_of(t, nvtx=nvtx) for t in (trace, moved(trace, 10**12), relabelled(trace)))
    found = steps.windows.select("start_ns", "end_ns", "excluded")
    assert later.windows.select("start_ns", "end_ns", "excluded").equals(
        found.with_columns(pl.col("start_ns", "end_ns") + 10**12)
    )
    assert renamed.windows.select("start_ns", "end_ns", "excluded").equals(found)
    assert renamed.replays.equals(steps.replays)


@pytest.mark.parametrize(
    ("text", "labelled"),
    [
        ("prefill_batch", True),
        ("execute_context_3(96)_generation_0(0)", True),
        ("execute_context_0(0)_generation_4(4)", False),
        ("sampling", False),
    ],
)
def test_a_step_with_a_range_of_prefill_is_labelled_however_short_its_work(text: str, labelled: bool) -> None:
    loop = Loop()
    for number in range(12):
        loop.step()
        if number == 6:
            begin = loop.now
            loop.kernel("short", 5)
            loop.range(text, begin)
    windows = steps_of(loop.sketch.trace()).windows
    assert windows["excluded"].to_list().count("prefill") == labelled
    if labelled:
        begin, end = windows.filter(pl.col("excluded") == "prefill").select("start_ns", "end_ns").row(0)
        assert begin < loop.firsts[7] <= end


def test_each_lane_says_how_its_steps_were_found() -> None:
    sketch = Sketch()
    engine, other = Loop(sketch), Loop(sketch, pid=1002, now=1_200_000, seed=2)
    for _ in range(12):
        engine.step()
    for _ in range(4):
        for name in ("one", "two", "three"):
            other.kernel(name, 30)
        other.read()
    steps = steps_of(sketch.trace())
    assert (steps.method, steps.confidence, steps.mark) == ("nvtx", "high", "decode_step")
    assert steps.of(Rank(0, engine.process)) == steps.of()
    assert (steps.of(Rank(0, other.process)).method, steps.of(Rank(0, other.process)).confidence) == ("sequence", "low")


def test_a_mark_asked_for_cuts_the_lanes_that_have_it() -> None:
    sketch = Sketch()
    ranks = [Loop(sketch, pid=1001 + gpu, gpu=gpu, seed=gpu) for gpu in (0, 1)]
    for _ in range(8):
        for rank in ranks:
            rank.step(mark="step" if rank.gpu else None)
    steps = steps_of(sketch.trace(), step_by="nvtx:^step$")
    assert begins(steps, gpu=1) == ranks[1].firsts
    assert begins(steps, gpu=0) == []
