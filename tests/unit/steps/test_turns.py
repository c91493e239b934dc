"""Passes by turns, each with a read behind it: parts of one step, or steps of other batches, buffers and engines."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import pytest

from tests.simulate import US, Graph, Host, Machine
from tests.unit.steps.found import reasons, step_begins, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bubblefinder.steps.model import Steps
    from tests.simulate import Node

NAMES = ("norm", "qkv", "rope", "attention", "out", "norm_2", "up", "act", "down")
GEMMS = ("qkv", "out", "up", "down")


def model(layers: int, us: float = 5, prefix: str = "", names: Sequence[str] = NAMES) -> tuple[Node, ...]:
    """The kernels of a pass."""
    body = tuple((prefix + name, us * (0.5 + place % 3)) for place, name in enumerate(names)) * layers
    return ((prefix + "embed", us), *body, (prefix + "final_norm", us), (prefix + "lm_head", 6 * us))


def by_graph(host: Host, number: int, kernels: Sequence[Node]) -> int:
    return host.replay(Graph(number, tuple(kernels)), call_us=10 + len(kernels) / 10)


def by_kernels(host: Host, _: int, kernels: Sequence[Node]) -> int:
    first, *_rest = (host.kernel(name, us) for name, us in kernels)
    return first


LAUNCHES = pytest.mark.parametrize("launch", [by_graph, by_kernels])
TARGET = model(12)
DRAFTS = {
    "own names": model(6, prefix="draft_"),
    "own names, nearly as long": model(10, prefix="draft_"),
    "the same names": model(6),
    "the same names, a third": model(4),
    "the same names, nearly as long": model(10),
}
SIZES = {
    "two buffers": (TARGET, TARGET),
    "longer": (TARGET, model(12, 6)),
    "a reduction more": (TARGET, model(12, 6, names=(*NAMES, "split_k"))),
    "other gemms": (TARGET, tuple((f"{name}_64x64" if name in GEMMS else name, us) for name, us in model(12, 6))),
}


def by_turns(machine: Machine, launch: Callable[[Host, int, Sequence[Node]], int], *passes: Sequence[Node]) -> Steps:
    """Twenty-four rounds of passes, each with a read behind it."""
    host = machine.host()
    for _ in range(24):
        for number, (kernels, work) in enumerate(zip(passes, cycle((300, 90)), strict=False)):
            host.work(work)
            launch(host, 3 + number, kernels)
            host.read(32)
    return steps_of(machine.trace())


@LAUNCHES
@pytest.mark.parametrize("draft", DRAFTS)
def test_a_draft_and_its_target_by_turns_are_one_step(
    launch: Callable[[Host, int, Sequence[Node]], int], draft: str
) -> None:
    steps = by_turns(Machine(), launch, DRAFTS[draft], TARGET)
    assert (len(step_begins(steps)), steps.confidence) == (24, "high")


@LAUNCHES
@pytest.mark.parametrize("uploads", [0, 1])
@pytest.mark.parametrize("drafts", [1, 2])
@pytest.mark.parametrize("layers", [(10, 12), (20, 24)], ids=str)
def test_a_target_of_more_layers_is_one_step_with_drafts_behind_which_the_host_works_about_as_long(
    launch: Callable[[Host, int, Sequence[Node]], int], uploads: int, drafts: int, layers: tuple[int, int]
) -> None:
    """All kernels have the same names, and graphs of one size are of one kind: how often they come tells them apart."""
    machine = Machine(seed=3)
    host = machine.host()
    draft, target = map(model, layers)
    for _ in range(30):
        host.work(300)
        for _ in range(uploads):
            host.upload(64)
        for _ in range(drafts):
            launch(host, 5, draft)
            host.read(32)
            host.work(250)
        launch(host, 6, target)
        host.read(32)
    steps = steps_of(machine.trace())
    assert (len(step_begins(steps)), steps.confidence) == (30, "high")


@pytest.mark.parametrize("most", [3, 4])
@pytest.mark.parametrize("layers", [(5, 6), (10, 12)], ids=str)
def test_graphs_of_nearly_one_length_with_an_upload_before_any_number_of_them_are_never_sure(
    layers: tuple[int, int], most: int
) -> None:
    """Drafts and a target, or batches with an upload now and then: only nodes would tell."""
    machine = Machine(seed=3, node_mode=False)
    host = machine.host()
    draft, target = map(model, layers)
    for _ in range(30):
        host.work(300)
        host.upload(64)
        for _ in range(machine.random.randint(1, most)):
            by_graph(host, 5, draft)
            host.read(32)
            host.work(250)
        by_graph(host, 6, target)
        host.read(32)
    assert steps_of(machine.trace()).confidence != "high"


@pytest.mark.parametrize("layers", [4, 6, 10])
def test_a_draft_and_its_target_of_which_only_the_lengths_are_known_are_never_sure(layers: int) -> None:
    steps = by_turns(Machine(node_mode=False), by_graph, model(layers), TARGET)
    rival = steps.of().rival
    assert steps.confidence != "high"
    assert {len(step_begins(steps)) // 20, rival.steps // 20 if rival else 0} == {1, 2}


@LAUNCHES
@pytest.mark.parametrize("sizes", SIZES)
def test_other_batches_by_turns_make_no_longer_step(
    launch: Callable[[Host, int, Sequence[Node]], int], sizes: str
) -> None:
    machine = Machine()
    host = machine.host()
    begun = []
    for number in range(40):
        host.work(200)
        host.upload(64)
        begun.append(launch(host, 3 + number % 2, SIZES[sizes][number % 2]))
        host.read(8)
    steps = steps_of(machine.trace())
    assert all(0 <= begin - found < 20 * US for begin, found in zip(begun, step_begins(steps), strict=True))
    assert steps.confidence == "high"


@LAUNCHES
def test_two_engines_in_one_process_are_never_sure(launch: Callable[[Host, int, Sequence[Node]], int]) -> None:
    machine = Machine()
    one = machine.host()
    other = one.thread(2)
    for _ in range(24):
        for host, number, kernels in ((one, 3, TARGET), (other, 4, model(6, prefix="other_"))):
            host.not_before(max(one.now, other.now))
            host.work(200)
            host.upload(64)
            launch(host, number, kernels)
            host.read(8)
    assert steps_of(machine.trace()).confidence != "high"


@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
def test_a_short_graph_every_few_steps_is_no_target(node_mode: bool) -> None:
    """It compacts the cache, and the host reads what it did."""
    machine = Machine(node_mode=node_mode)
    host = machine.host()
    for number in range(42):
        host.work(200)
        host.upload(64)
        by_graph(host, 3, TARGET)
        host.read(8)
        if number % 3 == 2:
            host.work(100)
            by_graph(host, 9, (("gather", 8), ("scatter", 8)) * 4)
            host.read(8)
    steps = steps_of(machine.trace())
    assert (len(step_begins(steps)), steps.confidence) == (42, "high")
    assert reasons(steps) == [None] * 41 + ["tail"]


@LAUNCHES
@pytest.mark.parametrize("kernels", [2, 160], ids=["a metric", "experts"])
def test_what_a_few_steps_do_besides_and_read_makes_no_longer_step(
    launch: Callable[[Host, int, Sequence[Node]], int], kernels: int
) -> None:
    machine = Machine()
    host = machine.host()
    for number in range(39):
        host.work(200)
        host.upload(64)
        launch(host, 3, TARGET)
        host.kernel("argmax", 3)
        host.read(8)
        if number % 4 == 3:
            for place in range(kernels):
                host.kernel(f"besides_{place % 3}", 3)
            host.read(1024)
            host.work(300)
    steps = steps_of(machine.trace())
    assert (len(step_begins(steps)), steps.confidence) == (39, "high")


@LAUNCHES
@pytest.mark.parametrize(("reads", "told", "sure"), [(True, 80, "high"), (False, 20, "medium")])
def test_passes_for_which_the_host_plans_once_are_steps_if_each_gives_its_token(
    launch: Callable[[Host, int, Sequence[Node]], int], reads: bool, told: int, sure: str
) -> None:
    """Four steps a round of the scheduler. Where tokens are read once a round, that may be the step: both are named."""
    machine = Machine()
    host = machine.host()
    for _ in range(20):
        host.work(600)
        host.upload(256)
        for _ in range(4):
            host.work(30)
            launch(host, 3, TARGET)
            host.kernel("argmax", 3)
            if reads:
                host.read(8)
        if not reads:
            host.read(32)
    steps = steps_of(machine.trace())
    rival = steps.of().rival
    assert (len(step_begins(steps)), steps.confidence) == (told, sure)
    assert (rival.steps if rival else 0) in ((0,) if reads else (79, 80))


def test_two_halves_of_a_batch_side_by_side_are_one_step() -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(30):
        host.work(300)
        for stream in (7, 13):
            host.upload(64, stream=stream)
            host.replay(Graph(3, TARGET), call_us=30, stream=stream)
        host.synchronize("cudaDeviceSynchronize_v3020")
    steps = steps_of(machine.trace())
    assert (len(step_begins(steps)), steps.confidence) == (30, "high")


@LAUNCHES
@pytest.mark.parametrize("drafts", [(1, 4), (2, 4)], ids=str)
@pytest.mark.parametrize("draft", ["own names", "own names, nearly as long"])
def test_drafts_as_often_as_it_likes_are_of_one_step_with_a_target_that_takes_little_longer(
    launch: Callable[[Host, int, Sequence[Node]], int], drafts: tuple[int, int], draft: str
) -> None:
    machine = Machine(seed=3)
    host = machine.host()
    for _ in range(30):
        host.work(300)
        for _ in range(machine.random.randint(*drafts)):
            launch(host, 5, DRAFTS[draft])
            host.read(32)
            host.work(60)
        launch(host, 6, TARGET)
        host.kernel("accept", 3)
        host.read(32)
    steps = steps_of(machine.trace())
    assert (len(step_begins(steps)), steps.confidence) == (30, "high")
