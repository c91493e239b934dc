from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import polars as pl
import pytest

from bubblefinder.steps.by_cadence import find_cadence
from bubblefinder.steps.signatures import KERNELS, TO_DEVICE, TO_HOST, Signatures
from bubblefinder.trace.model import MEMCPY
from tests import samples
from tests.loops import DRAFT, EXTEND, SPECULATIVE, US, VERIFY, Graph, Loop
from tests.unit.steps.found import WITH_AND_WITHOUT, begins, reasons, step_begins, steps_of

MODES = pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
PREFILL = Graph(90, ("prefill_attn", "prefill_mlp") * 150, 20)


def piecewise(loop: Loop, batch: int = 0, attention_us: float = 6) -> None:
    """A step of pieces with eager attention between them; each piece is a graph of its own."""
    loop.spend(300)
    begin = loop.now
    loop.firsts.append(loop.upload())
    for piece in range(20):
        names = ("embed", "qkv") if piece == 0 else ("qkv", "rope", "norm")
        loop.replay(Graph(20 + piece + 1000 * batch, names, 5 + batch))
        loop.kernel("attention", attention_us)
    loop.read()
    loop.range("execute_context_0(0)_generation_1(1)", begin)


def ahead(loop: Loop, steps: int, graphs: tuple[Graph, ...], batch: tuple[int, ...] = (0,)) -> list[tuple[int, int]]:
    """A host one step ahead of the GPU, its copies on their own stream; returns (end before, begin) of each step."""
    seams, done, before = list[tuple[int, int]](), [0], 0
    for number in range(steps):
        loop.spend(150)
        begin, sides = loop.now, {"process": loop.process, "gpu": loop.gpu, "stream": 14}
        size = batch[number % len(batch)]
        upload = loop.call("cudaMemcpyAsync_v3020", 4)
        to_device = {"copy_kind": 1, "src_kind": 1, "dst_kind": 2, "bytes": 512}
        loop.sketch.operation(MEMCPY, loop.now, loop.now + US, correlation=upload, **sides, **to_device)
        loop.spend(30)
        firsts = [loop.replay(graph.at(size) if size else graph) for graph in graphs]
        seams.append((before, firsts[0]))
        before = loop.free
        read = loop.call("cudaMemcpyAsync_v3020", 4)
        to_host = {"copy_kind": 2, "src_kind": 2, "dst_kind": 1, "bytes": 8}
        done.append(loop.free + 3 * US)
        loop.sketch.operation(MEMCPY, loop.free + 2 * US, done[-1], correlation=read, **sides, **to_host)
        wait, loop.now = loop.now, max(loop.now, done[-2]) + 3 * US
        loop.sketch.call("cudaEventSynchronize_v3020", wait, loop.now, loop.key())
        loop.range("run_batch", begin)
    return seams


@WITH_AND_WITHOUT
@MODES
@pytest.mark.parametrize("graphs", [(VERIFY,), SPECULATIVE], ids=["one graph", "three graphs"])
@pytest.mark.parametrize("batches", [(1, 4, 4, 2), (8, 1, 3, 2, 1)], ids=str)
def test_batch_sizes_that_recur_in_a_pattern_make_no_longer_step(
    nvtx: bool, node_mode: bool, graphs: tuple[Graph, ...], batches: tuple[int, ...]
) -> None:
    loop = Loop(node_mode=node_mode)
    for number in range(30):
        loop.step([graph.at(batches[number % len(batches)]) for graph in graphs])
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert begins(steps) == loop.firsts or steps.confidence == "low"
    assert len(begins(steps)) == 30


@MODES
def test_two_graphs_of_one_size_stay_two_whatever_the_batch(node_mode: bool) -> None:
    loop = Loop(node_mode=node_mode)
    for number in range(21):
        loop.step([Graph(5, ("a", "b") * 10).at(number % 3), Graph(6, ("c", "d") * 10).at(number % 3)])
    steps = steps_of(loop.sketch.trace(), nvtx=False)
    assert begins(steps) == loop.firsts
    assert steps.replays["position"].to_list() == [0, 1] * 21


def test_graphs_of_one_size_with_a_read_before_each_are_told_apart_by_their_nodes() -> None:
    loop = Loop()
    for _ in range(12):
        loop.step([Graph(5, ("a", "b") * 10)])
        loop.step([Graph(6, ("c", "d") * 10)])
    steps = steps_of(loop.sketch.trace(), nvtx=False)
    assert steps.replays["position"].to_list() in ([0, 1] * 12, [1, 0] * 12)


@WITH_AND_WITHOUT
@MODES
@pytest.mark.parametrize(
    "drafts",
    [[1, 2] * 10, [3] * 6 + [2, 3, 3, 1] * 3, [1, 3, 2, 5, 3, 3, 1, 4, 2, 2, 3, 5, 1, 2, 3, 4]],
    ids=["alternating", "mostly three", "at random"],
)
@pytest.mark.parametrize("extend", [True, False], ids=["extend", "no extend"])
def test_a_step_drafts_as_often_as_it_likes(nvtx: bool, node_mode: bool, drafts: list[int], extend: bool) -> None:
    loop = Loop(node_mode=node_mode)
    for count in drafts:
        loop.step([*[DRAFT] * count, VERIFY, *[EXTEND] * extend])
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert begins(steps) == loop.firsts
    assert steps.confidence == "high"
    expected = {"draft": sum(drafts), "verify": len(drafts)} | ({"draft-extend": len(drafts)} if extend else {})
    if nvtx or node_mode:  # a name tells of a language model
        assert Counter(steps.replays["role"]) == expected
    else:
        assert sorted(Counter(steps.replays["role"]).values()) == sorted(expected.values())


@MODES
def test_a_step_may_leave_its_draft_out(node_mode: bool) -> None:
    loop = Loop(node_mode=node_mode)
    for count in [0, 1, 2, 0, 3, 1, 0, 2, 1, 1, 0, 2, 3, 0]:
        loop.step([*[DRAFT] * count, VERIFY, EXTEND])
    trace = loop.sketch.trace()
    assert begins(steps_of(trace, nvtx=False)) == loop.firsts
    assert begins(steps_of(trace)) == loop.firsts


@WITH_AND_WITHOUT
@MODES
@pytest.mark.parametrize("graphs", [(VERIFY,), SPECULATIVE, (DRAFT, DRAFT, VERIFY, EXTEND)], ids=["1", "3", "4"])
@pytest.mark.parametrize("batch", [(0,), (0, 2, 1, 3)], ids=["one size", "changing"])
def test_a_host_that_runs_ahead_leaves_the_steps_as_they_are(
    nvtx: bool, node_mode: bool, graphs: tuple[Graph, ...], batch: tuple[int, ...]
) -> None:
    loop = Loop(node_mode=node_mode)
    seams = ahead(loop, 20, graphs, batch)
    cuts = begins(steps_of(loop.sketch.trace(), nvtx=nvtx))
    assert len(cuts) == 20
    assert all(end <= cut <= begin for (end, begin), cut in zip(seams[1:], cuts[1:], strict=True))


@WITH_AND_WITHOUT
@MODES
def test_pieces_with_a_prefill_in_every_fourth_batch(nvtx: bool, node_mode: bool) -> None:
    loop = Loop(node_mode=node_mode)
    for number in range(16):
        mixed = number % 4 == 3
        piecewise(loop, batch=5 * mixed, attention_us=60 if mixed else 6)
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert begins(steps) == loop.firsts
    assert reasons(steps) == [*[None, None, None, "prefill"] * 3, None, None, None, "tail"]


@pytest.mark.parametrize("seed", range(4))
def test_several_drafts_at_the_begin_of_a_capture_are_of_one_step(seed: int) -> None:
    random = Random(seed)
    rows, first = list[tuple[int, int, int, int]](), list[int]()
    for step in range(40):
        batch = random.randint(0, 3)
        before = TO_HOST | (KERNELS if random.random() < 0.3 else 0) if step else 0
        first.append(len(rows))
        for draft in range(random.randint(1, 3) if step else 2):
            rows.append((0, 22 + 2 * (batch > 0), 0 if draft else before, 20 + batch))
        rows.append((1, 147, TO_DEVICE, 8 + batch))
    kinds, sizes, seams, ids = (np.array(column) for column in zip(*rows, strict=True))
    work = np.where(seams & TO_HOST, 300_000, np.where(seams, 60_000, 8_000))
    work[0] = -1
    told = Signatures(kinds, sizes, True, sizes // 9, seams, ids, host_work=work, idle=work, whole=True)  # noqa: FBT003
    found = find_cadence(told)
    assert found is not None
    assert found.starts.tolist() == first


@MODES
def test_alternating_pieces_have_their_place_though_nothing_precedes_the_first(node_mode: bool) -> None:
    loop = Loop(node_mode=node_mode)
    for _ in range(12):
        loop.spend(300)
        for layer in range(12):
            loop.upload()
            loop.replay(Graph(20 + 2 * layer, ("norm", "qkv"), 5))
            loop.kernel("attention", 6)
            loop.replay(Graph(21 + 2 * layer, ("out", "up", "act", "down"), 5))
        loop.kernel("sample", 5)
        loop.read()
    steps = steps_of(loop.sketch.trace(), nvtx=False)
    assert steps.replays.group_by("window_index").len()["len"].to_list() == [24] * 12


def test_each_graph_of_a_piecewise_step_has_one_place_from_the_first_replay_on() -> None:
    found = samples.analysis("torch_piecewise.node")
    replays = found.steps.replays.with_columns(found.timeline.replays["graph"])
    places = replays.drop_nulls("position").group_by("graph").agg(pl.col("position").n_unique())
    assert places["position"].to_list() == [1] * len(places)


@MODES
@pytest.mark.parametrize(("graphs", "first"), [((VERIFY,), 4), (SPECULATIVE, 1)], ids=["one graph", "three graphs"])
@pytest.mark.parametrize("pause_us", [5_000, 40_000])
def test_a_prefill_that_stops_for_longer_than_a_step_is_prefill_from_its_first_kernel(
    node_mode: bool, graphs: tuple[Graph, ...], first: int, pause_us: int
) -> None:
    loop = Loop(node_mode=node_mode)
    for number in range(24):
        if number % 8 == 6:
            loop.prefill(first, 5)
            loop.spend(pause_us)
            loop.prefill(60, 40)
        loop.step(graphs)
    steps = steps_of(loop.sketch.trace(), nvtx=False)
    windows = steps.windows.with_columns(length=pl.col("end_ns") - pl.col("start_ns"))
    assert windows.filter(pl.col("excluded").is_null())["length"].max() < 1_500_000  # type: ignore[operator]
    assert reasons(steps).count("prefill") == 3


@WITH_AND_WITHOUT
@MODES
@pytest.mark.parametrize("every", [4, 12])
def test_one_graph_with_eager_prefills_in_between(nvtx: bool, node_mode: bool, every: int) -> None:
    loop = Loop(node_mode=node_mode)
    for number in range(24):
        if number % every == every - 2:
            loop.prefill(60, 40)
        loop.step([VERIFY])
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert step_begins(steps) == loop.firsts
    assert reasons(steps).count("prefill") == 24 // every
    assert set(steps.replays["role"]) == {"decode"}


@WITH_AND_WITHOUT
@MODES
@pytest.mark.parametrize("graphs", [(VERIFY,), SPECULATIVE], ids=["one graph", "three graphs"])
def test_a_prefill_captured_as_a_graph_is_no_step(nvtx: bool, node_mode: bool, graphs: tuple[Graph, ...]) -> None:
    loop = Loop(node_mode=node_mode)
    for number in range(20):
        if number in {7, 14}:
            loop.spend(300)
            loop.upload(1 << 20)
            loop.replay(PREFILL)
            loop.read()
        loop.step(graphs)
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    assert step_begins(steps) == loop.firsts
    named = nvtx or node_mode  # no other name is there to show a language model
    assert reasons(steps).count("prefill" if named else "other_work") == 2
    assert Counter(steps.replays["role"])["other"] == 2


@MODES
def test_a_step_whose_launches_were_lost_in_part_begins_where_the_host_worked(node_mode: bool) -> None:
    loop = Loop(node_mode=node_mode)
    for number in range(14):
        loop.spend(400)
        loop.firsts.append(loop.upload())
        loop.spend(50)
        for graph in SPECULATIVE:
            gone = (number == 6 and graph is EXTEND) or (number == 7 and graph is DRAFT)
            loop.replay(graph, recorded=not gone)
        loop.read()
    assert begins(steps_of(loop.sketch.trace(), nvtx=False)) == loop.firsts


def test_what_only_ids_tell_is_said_with_doubt() -> None:
    loop = Loop(node_mode=False)
    for _ in range(10):
        for batch in (1, 2, 3):
            loop.spend(200)
            loop.replay(VERIFY.at(batch))
    steps = steps_of(loop.sketch.trace())
    assert (len(begins(steps)), steps.confidence) == (29, "medium")  # the first is of another size than the second


@pytest.mark.parametrize("seed", range(3))
def test_pauses_between_bursts_leave_the_steps_as_they_are(seed: int) -> None:
    random, loop = Random(seed), Loop()
    for number in range(30):
        if number % 7 == 6:
            loop.spend(random.choice([5_000, 50_000, 500_000]))
        loop.step()
    steps = steps_of(loop.sketch.trace(), nvtx=False)
    assert begins(steps) == loop.firsts
    assert steps.windows.filter(pl.col("excluded").is_null()).height == 29


@MODES
def test_steps_that_overlap_on_two_streams_are_no_prefills(node_mode: bool) -> None:
    loop, free = Loop(node_mode=node_mode), [0, 0]
    for number in range(24):
        buffer = number % 2
        loop.spend(150)
        begin = loop.now
        loop.upload()
        loop.free = max(free[buffer], loop.now)
        for graph in (VERIFY, EXTEND):
            loop.replay(graph)
        free[buffer] = loop.free
        wait, loop.now = loop.now, max(loop.now, free[1 - buffer]) + 3 * US
        loop.sketch.call("cudaEventSynchronize_v3020", wait, loop.now, loop.key())
        loop.range("run_batch", begin)
    assert "prefill" not in reasons(steps_of(loop.sketch.trace()))


def test_a_lost_launch_call_leaves_the_rest_as_it_is() -> None:
    loop = Loop()
    ahead(loop, 20, SPECULATIVE)
    calls = loop.sketch.rows["calls"]
    launches = [call for call in calls if call["name"] == loop.sketch.names["cudaGraphLaunch_v10000"]]
    calls.remove(launches[31])
    steps = steps_of(loop.sketch.trace(), nvtx=False)
    assert len(begins(steps)) == 20
    assert steps.replays["role"].to_list() == ["draft", "verify", "draft-extend"] * 20


@MODES
def test_a_warm_up_with_reads_of_its_own_precedes_the_steps_of_one_graph(node_mode: bool) -> None:
    loop = Loop(node_mode=node_mode)
    for _ in range(5):
        loop.replay(Graph(77, ("warm",) * 30))
        loop.spend(300)
        loop.read()
    for _ in range(20):
        loop.step([VERIFY])
    steps = steps_of(loop.sketch.trace(), nvtx=False)
    assert step_begins(steps) == loop.firsts
    assert Counter(steps.replays["role"]) == {"other": 5, "decode": 20}
