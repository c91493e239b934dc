from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from bubblefinder.steps.by_nvtx import Mark
from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline
from tests.judged import cut
from tests.loops import SPECULATIVE, US, VERIFY, Graph, Loop
from tests.unit.steps.found import begins, reasons, steps_of


@pytest.mark.parametrize("graphs", [(VERIFY,), SPECULATIVE], ids=["one graph", "three graphs"])
@pytest.mark.parametrize("every", [4, 12])
def test_known_marks_around_prefills_keep_the_decode_steps_clean(graphs: tuple[Graph, ...], every: int) -> None:
    loop = Loop()
    for number in range(24):
        if number % every == every - 1:
            loop.spend(200)
            begin = loop.now
            loop.firsts.append(loop.upload(1 << 20))
            for _ in range(100):
                loop.kernel("prefill", 20)
            loop.read()
            loop.range("run_batch", begin)
        loop.step(graphs, mark="run_batch")
    steps = steps_of(loop.sketch.trace())
    assert (steps.method, steps.mark) == ("nvtx", "run_batch")
    assert begins(steps) == loop.firsts
    assert reasons(steps).count("prefill") == 24 // every
    assert reasons(steps).count(None) == 23


def test_ranges_around_each_graph_are_no_marks_of_a_step_of_three() -> None:
    loop = Loop()
    for _ in range(12):
        loop.spend(400)
        loop.firsts.append(loop.upload())
        for graph in SPECULATIVE:
            begin = loop.now
            loop.replay(graph)
            loop.range("forward", begin)
        loop.read()
    steps = steps_of(loop.sketch.trace())
    assert steps.method == "cadence"
    assert begins(steps) == loop.firsts


def test_one_text_of_a_known_mark_does_not_win_over_the_others() -> None:
    loop = Loop(seed=3)
    for number in range(16):
        context = 1 if number % 4 == 3 else 0
        loop.step([VERIFY.at(context)], mark=f"execute_context_{context}({64 * context})_generation_1(1)")
    steps = steps_of(loop.sketch.trace())
    assert (steps.method, steps.mark) == ("nvtx", "execute_context_#(#)_generation_#(#)")
    assert begins(steps) == loop.firsts
    assert reasons(steps).count("prefill") == 3


def test_numbers_are_no_part_of_a_known_name_and_part_of_any_other() -> None:
    nowhere = np.empty(0, np.int64)
    text = "llama3.decode_step 17"
    known, other = Mark(text, nowhere, is_numbered=True), Mark(text, nowhere)
    assert (known.called, other.called) == ("llama3.decode_step #", text)
    for name, matches in ((text, [True, True]), ("llama3.decode_step 8", [True, False]), ("llama2.x", [False, False])):
        assert [bool(re.search(mark.pattern, name)) for mark in (known, other)] == matches


@pytest.mark.parametrize("graphs", [(VERIFY,), SPECULATIVE], ids=["one graph", "three graphs"])
@pytest.mark.parametrize(
    ("method", "cut_us"),
    # 60 us on, the window leaves out the upload alone, which only a mark tells.
    [*product(["nvtx", "nvtx:^decode_step$"], [60, 300, 700]), ("cadence", 300), ("cadence", 700)],
)
def test_a_window_that_begins_inside_a_step_has_a_head(method: str, graphs: tuple[Graph, ...], cut_us: int) -> None:
    loop = Loop()
    for _ in range(12):
        loop.step(graphs)
    window = (loop.firsts[3] + cut_us * US, loop.firsts[9])
    steps = find_steps(build_timeline(cut(loop.sketch.trace(), window=window)), method)
    inside = loop.firsts[4:9]
    assert begins(steps) == inside
    assert reasons(steps)[0] == "head"


@pytest.mark.parametrize("graph", SPECULATIVE[1:], ids=["verify", "extend"])
def test_a_range_around_a_part_of_the_step_does_not_cut_it(graph: Graph) -> None:
    loop = Loop()
    for _ in range(12):
        loop.spend(400)
        loop.firsts.append(loop.upload())
        loop.spend(50)
        for one in SPECULATIVE:
            begin = loop.now
            loop.replay(one)
            loop.range("part" if one is graph else None, begin)
        loop.read()
    steps = steps_of(loop.sketch.trace())
    assert begins(steps) == loop.firsts
    assert (steps.method, steps.confidence) == ("cadence", "high")


@pytest.mark.parametrize("text", ["decode_step", "llm.decode_step {}", "Decode step"])
def test_layers_that_read_and_keep_the_host_busy_are_no_steps_inside_a_range_called_one(text: str) -> None:
    loop = Loop()
    for number in range(20):
        begin = loop.now
        loop.firsts.append(loop.kernel("embed", 3))
        for _ in range(4):
            for name in ("norm", "qkv", "attention", "mlp"):
                loop.kernel(name, 3)
            loop.read()
            loop.spend(220)
        for name in ("norm", "qkv", "sample"):
            loop.kernel(name, 3)
        loop.read()
        loop.range(text.format(number), begin)
        loop.spend(40)
    steps = steps_of(loop.sketch.trace())
    assert (steps.method, steps.confidence) == ("nvtx", "high")
    assert begins(steps) == loop.firsts
