"""Roles from the ranges that Nsight Systems opens around Python functions of a stock engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.steps.find import find_steps
from bubblefinder.steps.roles import word_of
from bubblefinder.timeline.build import build_timeline
from tests.loops import DRAFT, EXTEND, VERIFY, Graph, Loop

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKER = "sglang.srt.speculative.eagle_worker_v2"


@pytest.mark.parametrize(
    ("text", "role"),
    [
        (f"{WORKER}.EagleDraftWorker.draft", "draft"),
        (f"{WORKER}.EagleDraftWorker._draft_extend_for_decode", "draft-extend"),
        (f"{WORKER}.EAGLEWorkerV2.verify", "verify"),
        (f"{WORKER}.EAGLEWorkerV2.forward_batch_generation", "decode"),
        ("sglang.srt.speculative.draft_utils.Buffers.fill", None),
        ("scheduler.process_batch_result", None),
        ("flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper.begin_forward", "decode"),
        ("flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper.plan", None),
        ("draft step", "draft"),
    ],
)
def test_a_function_is_named_by_its_class_and_its_own_name(text: str, role: str | None) -> None:
    assert word_of(text) == role


def test_a_range_around_the_whole_step_names_none_of_its_parts() -> None:
    assert roles(named_loop(f"{WORKER}.EAGLEWorkerV2.forward_batch_generation")) == SPOKEN * 8


def test_what_verify_runs_is_verify_whatever_its_runner_is_called() -> None:
    inner = {VERIFY: "sglang.srt.model_executor.runner.DecodeCudaGraphRunner.execute"}
    assert roles(named_loop("scheduler.run_batch", inner)) == SPOKEN * 8


SPOKEN = ["draft", "verify", "draft-extend"]
OWN = {DRAFT: f"{WORKER}.EagleDraftWorker.draft", VERIFY: f"{WORKER}.EAGLEWorkerV2.verify"}


def named_loop(outer: str, inner: Mapping[Graph, str] | None = None) -> Loop:
    """Steps of draft, verify and draft-extend in which the last has no range of its own."""
    loop = Loop()
    for _ in range(8):
        loop.spend(400)
        loop.upload()
        step = loop.now
        for graph in (DRAFT, VERIFY, EXTEND):
            loop.spend(20)
            begin = loop.now
            loop.replay(graph)
            loop.range((inner or {}).get(graph), begin)
            loop.range(OWN.get(graph), begin)
        loop.read()
        loop.range(outer, step)
    return loop


def roles(loop: Loop) -> list[str]:
    return list(find_steps(build_timeline(loop.sketch.trace())).replays["role"])


def test_a_wrapper_named_after_prefill_makes_no_prefill_of_a_step() -> None:
    loop = named_loop("scheduler.run_batch", {VERIFY: "flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper.plan"})
    steps = find_steps(build_timeline(loop.sketch.trace()))
    assert "prefill" not in steps.windows["excluded"].to_list()
    assert list(steps.replays["role"]) == SPOKEN * 8


def test_a_cycle_that_begins_with_verify_drafts_last() -> None:
    loop = Loop()
    for _ in range(10):
        loop.spend(900)
        for graph in (VERIFY, EXTEND, DRAFT):
            loop.replay(graph)
            loop.spend(20)
    assert roles(loop) == ["verify", "draft-extend", "draft"] * 10


FLUX = Graph(31, ("flux", "limiter") * 10)
PRESSURE = Graph(32, ("jacobi", "restrict", "prolong") * 60)
HALO = Graph(33, ("pack", "unpack") * 6)


@pytest.mark.parametrize("marked", [True, False])
def test_no_program_but_a_language_model_drafts_or_verifies(marked: bool) -> None:
    loop = Loop()
    for number in range(10):
        step = loop.now
        loop.spend(300)
        for graph, name in ((FLUX, "flux"), (PRESSURE, f"pressure {number}"), (HALO, "halo")):
            begin = loop.now
            loop.replay(graph)
            loop.range(name if marked else None, begin)
        loop.read()
        loop.range("time_step" if marked else None, step)
    assert roles(loop) == (["flux", "pressure #", "halo"] if marked else ["side 1", "main", "side 2"]) * 10


def test_a_range_around_the_only_graph_names_it() -> None:
    loop = Loop()
    for _ in range(10):
        step = loop.now
        loop.spend(300)
        begin = loop.now
        loop.replay(PRESSURE)
        loop.range("pressure", begin)
        loop.read()
        loop.range("time_step", step)
    assert roles(loop) == ["pressure"] * 10


@pytest.mark.parametrize(
    ("graphs", "told"),
    [((VERIFY,), ["decode"]), ((DRAFT, VERIFY), ["draft", "verify"])],
    ids=["one graph", "two graphs"],
)
def test_graphs_of_most_steps_have_roles_though_the_pieces_of_a_few_make_the_cadence(
    graphs: tuple[Graph, ...], told: list[str]
) -> None:
    """A batch of no captured size runs by pieces: so do steps of a stock engine that drafted nothing."""
    loop = Loop()
    for number in range(24):
        loop.spend(300)
        loop.upload()
        if number in {2, 3, 9, 16, 17, 21}:
            for piece in range(28):
                loop.replay(Graph(20 + piece, ("qkv", "rope", "norm")))
                loop.kernel("attention", 6)
        else:
            for graph in graphs:
                loop.replay(graph)
        loop.read()
    steps = find_steps(build_timeline(loop.sketch.trace()))
    whole = steps.replays.filter(steps.replays["position"].is_null())
    assert list(whole["role"]) == told * 18
    assert "other" not in list(steps.replays["role"])
