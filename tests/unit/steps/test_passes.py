"""Targets behind their drafts, prefills before steps, parts of a step, and graphs that are given up for some steps."""

from __future__ import annotations

import pytest

from tests.simulate import Graph, Host, Machine, nodes
from tests.unit.steps.found import begins, reasons, step_begins, steps_of

DRAFT = nodes("small_norm", "small_qkv", "small_out", us=6)
LAYER = nodes("norm", "qkv", "rope", "attention", "out", us=6)
PROMPT = nodes("p_norm", "p_qkv", "p_rope", "p_attention", "p_out", us=70)


def run(host: Host, kernels: tuple[tuple[str, float], ...]) -> int:
    """Launch kernels one by one; returns when the first begins."""
    first, *_ = (host.kernel(name, us) for name, us in kernels)
    return first


def forward(host: Host, layers: tuple[tuple[str, float], ...]) -> int:
    """A pass kernel by kernel, between an embedding and a head that all models share."""
    begun = host.kernel("embed", 4)
    run(host, (*layers, ("final_norm", 4), ("lm_head", 30)))
    return begun


@pytest.mark.parametrize("drafts", [(1, 1), (1, 4), (5, 8)], ids=str)
@pytest.mark.parametrize("uploads", [0, 1, 3])
def test_a_target_kernel_by_kernel_is_no_prefill_of_its_drafts(drafts: tuple[int, int], uploads: int) -> None:
    machine = Machine()
    host = machine.host()
    least, most = drafts
    for number in range(20):
        host.work(300)
        for _ in range(uploads):
            host.upload(64)
        for _ in range(least + number % (most - least + 1)):
            forward(host, DRAFT * 2)
            host.read(8)
            host.work(60)
        forward(host, LAYER * 12)
        host.read(8)
    steps = steps_of(machine.trace())
    told = uploads or most < 5
    assert len(step_begins(steps)) == 20 or (not told and steps.confidence != "high")


def test_a_prefill_kernel_by_kernel_is_no_target_of_the_steps_behind_it() -> None:
    machine = Machine()
    host = machine.host()
    begun = []
    for number in range(40):
        if number % 4 == 1:
            host.work(120)
            host.upload(1 << 15)
            run(host, PROMPT * 8)
            host.read(8)
        host.work(250)
        host.upload(64)
        begun.append(forward(host, LAYER * 8))
        host.read(8)
    steps = steps_of(machine.trace())
    assert len(step_begins(steps)) == 40
    assert steps.confidence == "high"


@pytest.mark.parametrize("parts", [2, 3])
def test_parts_of_a_step_are_no_batch_sizes_by_turns(parts: int) -> None:
    """Each part of a speculative step uploads, waits and reads; none of what sets them apart is another batch size."""
    machine = Machine()
    host = machine.host()
    begun = []
    for _ in range(20):
        host.work(200)
        begun.append(host.upload(64))
        for part in range(parts):
            run(host, nodes(*(f"plan_{part}_{place}" for place in range(8 + part)), "cast", "copy", us=3))
            host.read(4)
            host.work(80)
            host.replay(Graph(3 + part, nodes(f"attention_{part}", f"mlp_{part}", us=20) * (4 + part)))
            host.upload(64)
            host.kernel("gather", 3)
            host.read(16)
            host.work(60)
    steps = steps_of(machine.trace())
    assert step_begins(steps) == begun
    assert (steps.confidence, steps.of().rival) == ("high", None)


@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
def test_a_graph_given_up_for_some_steps_makes_no_longer_step(node_mode: bool) -> None:
    machine = Machine(node_mode=node_mode)
    host = machine.host()
    verify = nodes("norm", "qkv", "attention", "mlp", us=6) * 12
    for number in range(30):
        host.work(300)
        host.replay(Graph(5, nodes("draft_attention", "draft_mlp") * 2))
        if number % 5 == 4:
            run(host, verify)
        else:
            host.replay(Graph(6, verify))
        host.replay(Graph(7, nodes("extend_attention", "extend_mlp") * 2))
        host.read(8)
    steps = steps_of(machine.trace())
    assert reasons(steps) == [None] * 29 + ["tail"]
    assert (steps.confidence, steps.of().rival) == ("high", None)


@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
@pytest.mark.parametrize("prompt", [0, 1 << 14])
def test_a_step_that_gave_its_graph_up_is_no_prefill_unless_a_prompt_arrives(prompt: int, node_mode: bool) -> None:
    machine = Machine(node_mode=node_mode)
    host = machine.host()
    for number in range(30):
        alone = number % 7 == 4
        host.work(300)
        host.upload(prompt if alone and prompt else 64)
        if alone:
            run(host, LAYER * 12)
        else:
            host.replay(Graph(6, LAYER * 12))
        host.kernel("argmax", 3)
        host.read(8)
    counts = [reason in ("prefill", "other_work") for reason in reasons(steps_of(machine.trace()))]
    assert sum(counts) == (4 if prompt else 0)


@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
def test_a_prompt_beside_others_that_decode_is_a_prefill(node_mode: bool) -> None:
    """Such a batch has no size that was captured: it runs by the pieces of the graph, with the same kernels, longer."""
    machine = Machine(node_mode=node_mode)
    host = machine.host()
    for number in range(40):
        mixed = number % 9 == 8
        host.work(150)
        host.upload(1 << 12 if mixed else 64)
        for part in range(16 if mixed else 0):
            host.replay(Graph(20 + part, nodes("mlp", "experts", "norm", us=12)))
            host.kernel("attention", 12)
        if not mixed:
            host.replay(Graph(3, nodes("mlp", "experts", "norm", "attention") * 16))
        host.read(32)
    told = reasons(steps_of(machine.trace()))
    assert [number for number, reason in enumerate(told) if reason in ("prefill", "other_work")] == [8, 17, 26, 35]


@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
def test_a_prompt_by_another_graph_is_a_prefill_however_short(node_mode: bool) -> None:
    machine = Machine(node_mode=node_mode)
    host = machine.host()
    begun = []
    for number in range(20):
        if number % 5 == 2:
            host.work(250)
            host.upload(1 << 15)
            host.replay(Graph(90, PROMPT[:3] * 2))
            host.read(8)
        host.work(250)
        begun.append(host.upload(64))
        host.replay(Graph(3, LAYER * 8))
        host.kernel("argmax", 3)
        host.read(8)
    steps = steps_of(machine.trace())
    assert step_begins(steps) == begun
    assert sum(reason in ("prefill", "other_work") for reason in reasons(steps)) == 4


def test_a_read_in_the_middle_of_a_step_begins_none() -> None:
    """The draft's result is read, the target's is not: what the host works before the draft is what lies between."""
    machine = Machine()
    host = machine.host()
    begun = []
    for _ in range(20):
        host.work(100)
        begun.append(host.upload(64))
        forward(host, DRAFT * 2)
        host.read(8)
        host.work(20)
        forward(host, LAYER * 12)
        host.kernel("sample", 3)
    steps = steps_of(machine.trace())
    assert step_begins(steps) == begun


def test_a_layers_read_begins_no_step_however_long_the_host_works_behind_it() -> None:
    machine = Machine()
    host = machine.host()
    begun = []
    for _ in range(20):
        host.work(120)
        begun.append(host.upload(64))
        host.kernel("embed", 4)
        for layer in range(16):
            host.replay(Graph(20 + layer, LAYER))
            for _ in range(3):
                host.kernel("nonzero", 2)
                host.read(16)
                host.work(220)
        run(host, (("final_norm", 4), ("lm_head", 30), ("sample", 3)))
    steps = steps_of(machine.trace())
    assert step_begins(steps) == begun


@pytest.mark.parametrize(("text", "method"), [("layer", "sequence"), ("token", "nvtx")])
def test_a_range_called_a_layer_is_no_step_though_it_covers_nearly_all(text: str, method: str) -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(20):
        host.work(40)
        host.upload(64)
        with host.range("token" if text == "token" else None):
            host.kernel("embed", 4)
            for _ in range(12):
                with host.range("layer"):
                    run(host, LAYER)
                    host.read(16)
                    host.work(60)
            run(host, (("final_norm", 4), ("lm_head", 30)))
            host.read(8)
    steps = steps_of(machine.trace())
    assert (len(step_begins(steps)), steps.method) == (20, method)


@pytest.mark.parametrize("merged", [(), (4, 9)], ids=["each", "two in one"])
def test_steps_some_of_which_are_two_are_never_sure(merged: tuple[int, ...]) -> None:
    machine = Machine()
    host = machine.host()
    for number in range(20):
        host.work(100)
        with host.range(None if number - 1 in merged else "token"):
            for _ in range(2 if number in merged else 0 if number - 1 in merged else 1):
                host.upload(64)
                host.replay(Graph(3, LAYER * 8))
                host.kernel("argmax", 3)
                host.read(8)
    steps = steps_of(machine.trace(), step_by="nvtx:^token$")
    assert (len(begins(steps)), steps.confidence) == (20 - len(merged), "medium" if merged else "high")


def test_the_first_step_begins_where_the_host_had_worked_and_not_at_its_second_draft() -> None:
    machine = Machine()
    host = machine.host()
    begun = []
    for number in range(10):
        host.work(400)
        begun.append(host.replay(Graph(11, DRAFT * 2)))
        host.read(8)
        for _ in range(1 + number % 3):
            host.work(100)
            host.replay(Graph(11, DRAFT * 2))
            host.read(8)
        host.work(100)
        host.replay(Graph(12, LAYER * 24))
        host.kernel("argmax", 3)
        host.read(8)
    assert step_begins(steps_of(machine.trace())) == begun


@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
@pytest.mark.parametrize("parts", [6, 8])
def test_a_graph_once_a_step_beside_eager_parts_that_are_each_read_is_no_prefill(node_mode: bool, parts: int) -> None:
    """What is packed several times for the graph comes nowhere else, as the layers of a prompt would."""
    machine = Machine(node_mode=node_mode)
    host = machine.host()
    shared, own = nodes("norm", "sum", "scale", "pack_out", us=3), nodes("scan", "conv", "gate", "mix", us=3)
    for _ in range(30):
        host.work(300)
        host.upload(64)
        run(host, nodes("pack", us=3) * 4)
        host.replay(Graph(3, LAYER * 8))
        run(host, shared)
        host.read(8)
        for _ in range(parts):
            host.work(40)
            run(host, own + shared)
            host.read(8)
    steps = steps_of(machine.trace())
    assert (len(step_begins(steps)), steps.confidence) == (30, "high")
