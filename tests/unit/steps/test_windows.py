from __future__ import annotations

from random import Random

import pytest

from tests.loops import DRAFT, EXTEND, SPECULATIVE, VERIFY, Graph, Loop
from tests.unit.steps.found import WITH_AND_WITHOUT, reasons, steps_of

PREFILL = Graph(90, ("prefill_attn", "prefill_mlp") * 150, 20)


def prefill_by_graph(loop: Loop, mark: str | None) -> None:
    loop.spend(300)
    begin = loop.now
    loop.upload(1 << 20)
    loop.replay(PREFILL)
    loop.read()
    loop.range(mark, begin)


@WITH_AND_WITHOUT
@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
@pytest.mark.parametrize("mark", ["run_batch", None], ids=["marked", "between the marks"])
def test_prefills_by_graph_are_labelled_however_often_the_steps_draft(
    nvtx: bool, node_mode: bool, mark: str | None
) -> None:
    random, loop = Random(5), Loop(node_mode=node_mode)
    for number in range(30):
        if number % 7 == 4:
            prefill_by_graph(loop, mark)
        loop.step([*[DRAFT] * random.choice([1, 2, 2, 3, 5]), VERIFY, EXTEND], mark="run_batch")
    windows = steps_of(loop.sketch.trace(), nvtx=nvtx).windows
    assert windows["excluded"].to_list().count("prefill" if node_mode else "other_work") == 4
    lengths = windows.filter(windows["excluded"].is_null()).select(length="end_ns", begin="start_ns")
    assert (lengths["length"] - lengths["begin"]).max() < 5_000_000  # type: ignore[operator] # a prefill takes 6 ms


@WITH_AND_WITHOUT
@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
@pytest.mark.parametrize("graphs", [(VERIFY,), SPECULATIVE], ids=["one graph", "three graphs"])
def test_a_batch_size_that_comes_once_is_no_prefill(nvtx: bool, node_mode: bool, graphs: tuple[Graph, ...]) -> None:
    loop = Loop(node_mode=node_mode)
    for number in range(20):
        loop.step([graph.at(3) if number == 9 else graph for graph in graphs])
    assert "prefill" not in reasons(steps_of(loop.sketch.trace(), nvtx=nvtx))


@WITH_AND_WITHOUT
def test_an_eager_batch_size_that_comes_once_is_no_prefill(nvtx: bool) -> None:
    loop = Loop()
    for number in range(20):
        batch = 8 if number == 9 else 1
        loop.spend(300)
        begin = loop.now
        loop.upload()
        for _ in range(10):
            for name in ("norm", f"gemm_{batch}", "attention", f"down_{batch}"):
                loop.kernel(name, 8 + batch / 4)
        loop.read()
        loop.range("decode_step", begin)
    assert "prefill" not in reasons(steps_of(loop.sketch.trace(), nvtx=nvtx))


def test_replays_without_roles_are_no_prefills() -> None:
    # Too few and too irregular for a cadence; the marks tell.
    loop = Loop()
    for graphs in ([VERIFY], [DRAFT, EXTEND], [EXTEND, VERIFY, VERIFY], [DRAFT]):
        loop.step(graphs)
    steps = steps_of(loop.sketch.trace(), step_by="nvtx")
    assert reasons(steps) == [None, None, None, "tail"]
