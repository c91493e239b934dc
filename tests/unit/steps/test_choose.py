"""Steps that are steps: neither the layers of one nor several taken for one."""

from __future__ import annotations

from random import Random

import pytest

from tests.engines import Plan, draw, engine, right
from tests.simulate import PAGEABLE, Graph, Host, Machine, nodes
from tests.unit.steps.found import WITH_AND_WITHOUT, step_begins, steps_of

LAYER = nodes("norm", "qkv", "rope", "attention", "out", "router", "experts", us=6)


def loop(host: Host) -> None:
    """Work between two steps, and the input of the next."""
    host.work(250)
    host.upload(64)


@WITH_AND_WITHOUT
@pytest.mark.parametrize("reads", [0, 3])
def test_layers_are_no_steps(nvtx: bool, reads: int) -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(20):
        loop(host)
        with host.range("token"):
            host.kernel("embed", 4)
            for _ in range(8):
                with host.range("layer"):
                    for name, us in LAYER:
                        host.kernel(name, us)
                    for _ in range(reads):
                        host.kernel("nonzero", 2)
                        host.read(1)
                        host.work(8)
            for name in ("final_norm", "lm_head", "argmax"):
                host.kernel(name, 12)
            host.read(8)
    steps = steps_of(machine.trace(), nvtx=nvtx)
    assert (len(step_begins(steps)), steps.confidence) == (20, "high")


@pytest.mark.parametrize("layer_us", [10, 220])
def test_layers_with_experts_on_the_cpu_are_no_steps(layer_us: float) -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(20):
        host.work(150)
        host.upload(64)
        host.kernel("embed", 4)
        for layer in range(24):
            host.replay(Graph(100 + layer, LAYER[:5]), call_us=10)
            host.download(16_384)
            host.synchronize()
            host.work(layer_us)
            host.upload(16_384)
            host.replay(Graph(200 + layer, LAYER[5:]), call_us=10)
        host.kernel("lm_head", 40)
        host.read(8)
    assert len(step_begins(steps_of(machine.trace()))) == 20


def test_equal_layers_without_any_link_are_doubted() -> None:
    machine = Machine(jitter=0)
    host = machine.host()
    for _ in range(10):
        host.kernel("rope", 30)
        for _ in range(32):
            for name in ("norm", "qkv", "rope", "softmax", "out", "norm", "up", "act", "down"):
                host.kernel(name, 60)
        for name in ("norm", "qkv"):
            host.kernel(name, 60)
    steps = steps_of(machine.trace())
    assert len(step_begins(steps)) == 10 or steps.confidence == "low"


def test_each_pass_of_a_while_node_is_a_step() -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(12):
        loop(host)
        host.replay(Graph(3, LAYER * 12, passes=8))
        host.synchronize()
    steps = steps_of(machine.trace())
    assert (len(step_begins(steps)), steps.confidence) == (96, "high")


@pytest.mark.parametrize("drafts", [1, 3, 5])
def test_a_draft_model_and_its_target_make_one_step(drafts: int) -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(20):
        loop(host)
        for _ in range(drafts):
            host.replay(Graph(11, nodes("small_attention", "small_mlp") * 4))
            host.read(8)
            host.work(40)
        host.replay(Graph(12, LAYER * 12))
        host.kernel("sample", 5)
        host.read(8)
    assert len(step_begins(steps_of(machine.trace()))) == 20


@pytest.mark.parametrize("layers", [10, 24])
def test_layers_whose_pass_begins_with_a_kernel_that_they_have_as_well_are_doubted(layers: int) -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(20):
        host.work(60)
        host.kernel("norm", 6)
        for name in ("norm", "qkv", "attention", "out", "mlp") * layers:
            host.kernel(name, 6)
    steps = steps_of(machine.trace())
    assert len(step_begins(steps)) == 20 or steps.confidence == "low"


@pytest.mark.parametrize("passes", [2, 3])
def test_layers_of_so_few_passes_that_nothing_else_recurs_are_doubted(passes: int) -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(passes):
        host.work(60)
        for name in ("norm", "qkv", "attention", "out", "mlp") * 24:
            host.kernel(name, 6)
        host.kernel("head", 20)
    assert steps_of(machine.trace()).confidence == "low"


@pytest.mark.parametrize("mask_us", [350, 900])
def test_a_step_that_works_longest_in_its_middle_is_one_step(mask_us: float) -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(40):
        host.work(60)
        host.replay(Graph(5, nodes("draft_attention", "draft_mlp") * 12))
        host.read(32)
        host.work(mask_us)
        host.replay(Graph(3, LAYER * 24))
        host.upload(19_000, memory=PAGEABLE)
        host.synchronize()
        host.work(90)
        for name, us in (("apply_mask", 5), ("sample", 12)):
            host.kernel(name, us)
        host.read(8)
        host.work(120)
    assert len(step_begins(steps_of(machine.trace()))) in (39, 40)


@pytest.mark.parametrize("again", [2, 4, 12])
def test_one_graph_again_and_again_is_a_part_of_the_step(again: int) -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(20):
        loop(host)
        for _ in range(again):
            host.replay(Graph(1, LAYER))
        host.replay(Graph(2, nodes("norm", "lm_head")))
        host.read(8)
    assert len(step_begins(steps_of(machine.trace()))) == 20


@pytest.mark.parametrize("every", [6, 9, 13])
def test_prefills_that_come_regularly_make_no_longer_step(every: int) -> None:
    machine = Machine()
    host = machine.host()
    for number in range(40):
        if number % every == every // 2:
            host.upload(1 << 16)
            for name, us in LAYER * 12:
                host.kernel(f"prefill_{name}", us * 8)
            host.read(8)
        loop(host)
        host.replay(Graph(3, LAYER * 12))
        host.read(8)
    steps = steps_of(machine.trace())
    assert len(step_begins(steps)) == 40
    assert steps.windows["excluded"].to_list().count("prefill") == len(range(every // 2, 40, every))


def test_a_row_of_reads_behind_each_step_is_no_row_of_steps() -> None:
    """As transformers' assisted generation cuts its caches back, one layer after the other."""
    machine = Machine()
    host = machine.host()
    for _ in range(20):
        host.work(4_000)
        for layers in (2, 2, 2, 2, 16):
            host.upload(64)
            for name, us in LAYER * layers:
                host.kernel(name, us)
                host.work(20)
            host.kernel("lm_head", 12)
            host.read(8)
        for name in ("compare", "gather", "concatenate"):
            host.kernel(name, 4)
            host.work(30)
        host.read(32)
        for _ in range(32):
            host.kernel("clamp", 2)
            host.read(8)
            host.work(20)
    steps = steps_of(machine.trace())
    assert len(step_begins(steps)) == 20


@pytest.mark.parametrize("uploads", [1, 2])
def test_an_upload_and_little_work_before_the_first_step_are_none(uploads: int) -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(uploads):
        host.upload(64)
    for name in ("fill", "arange"):
        host.kernel(name, 3)
    for _ in range(20):
        loop(host)
        for name, us in LAYER * 12:
            host.kernel(name, us)
        host.read(8)
    steps = steps_of(machine.trace())
    assert (len(step_begins(steps)), steps.windows["excluded"][0]) == (20, "head")


@pytest.mark.parametrize("steps", [12, 23])
def test_layers_of_a_prefill_before_steps_of_one_graph_are_no_steps(steps: int) -> None:
    """As transformers decodes with a compiled model and a cache of fixed size."""
    machine = Machine()
    host = machine.host()
    for _ in range(16):
        host.upload(8, memory=PAGEABLE)
        host.synchronize()
        for number in range(40):
            host.kernel(f"prefill_{number}", 6)
            host.work(20)
    for number in range(steps):
        host.kernel("lm_head", 30)
        host.kernel("argmax", 6)
        host.read(8)
        host.work(300)
        host.kernel("ids" if number % 2 else "positions", 3)
        host.replay(Graph(3, LAYER * 16))
    found = steps_of(machine.trace())
    assert (len(step_begins(found)), found.confidence) == (steps, "high")


def test_a_chore_in_every_fourth_step_makes_no_longer_step() -> None:
    machine = Machine()
    host = machine.host()
    for number in range(40):
        loop(host)
        host.replay(Graph(3, LAYER * 12))
        if number % 4 == 3:
            host.kernel("rebalance", 20)
        host.read(8)
    steps = steps_of(machine.trace())
    assert len(step_begins(steps)) == 40


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ends", [0.15, 0.3, 0.45])
@pytest.mark.parametrize("prompts", [0, 6, 12])
def test_requests_that_end_now_and_then_make_no_longer_step(prompts: int, ends: float, seed: int) -> None:
    """SGLang makes its batch anew where a request ends: 144 steps of 32 requests were taken for 43, of 31 us each."""
    random, machine = Random(seed), Machine()
    host, left, begun = machine.host(), 24, []
    for _ in range(prompts):
        loop(host)
        for name, _ in LAYER * 8:
            host.kernel(f"prompt_{name}", 70)
        host.read(8)
    for _ in range(100):
        ended = random.choice((1, 1, 2)) if random.random() < ends and left > 2 else 0
        for _ in range(ended):
            host.upload(24)
            host.kernel("filter_rows", 3)
            host.kernel("filter_lengths", 3)
        left -= ended
        host.work(250)
        begun.append(host.replay(Graph(100 + (left + 3) // 4, LAYER * 8)))
        for name in ("top_k", "top_p", "argmax"):
            host.kernel(name, 3)
        host.read(8)
    steps = steps_of(machine.trace())
    assert len(step_begins(steps)) == len(begun)
    assert (steps.confidence, steps.of().rival) == ("high", None)


@pytest.mark.parametrize("seed", [30_310, 30_017])
def test_a_rival_is_named_and_can_be_asked_for(seed: int) -> None:
    trace = engine(seed).trace
    steps = steps_of(trace)
    rival = steps.of().rival
    if rival is not None:
        other = steps_of(trace, step_by=rival.step_by)
        assert abs(len(step_begins(other)) - rival.steps) <= 2


def test_a_rival_is_named() -> None:
    assert any(steps_of(engine(seed).trace).of().rival for seed in (30_042, 30_310, 30_362))


@pytest.mark.parametrize("seed", range(20_000, 20_030))
def test_steps_that_are_sure_are_right(seed: int) -> None:
    played = engine(seed)
    steps = steps_of(played.trace)
    assert steps.confidence != "high" or right(step_begins(steps), played.steps)


def test_a_plan_is_drawn_alike_from_the_same_seed() -> None:
    plan = draw(7)
    assert isinstance(plan, Plan)
    assert plan == draw(7)
    assert engine(7).steps == engine(7, plan).steps
