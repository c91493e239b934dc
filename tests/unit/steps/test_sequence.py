from __future__ import annotations

from random import Random

import pytest

from tests.loops import Loop
from tests.unit.steps.found import begins, reasons, steps_of


def eager_step(loop: Loop, *, mark: str | None = "decode_step", layer: str | None = None, extra: int = 0) -> None:
    """A step of twelve layers, kernel by kernel, and the read that ends it."""
    loop.spend(300)
    begin = loop.now
    loop.firsts.append(loop.upload())
    for _ in range(12):
        inner = loop.now
        for name in ("norm", "qkv", "attention", "mlp"):
            loop.kernel(name, 8)
        loop.range(layer, inner)
    for _ in range(extra):
        loop.kernel("extra", 3)
    loop.kernel("sample", 5)
    loop.read()
    loop.range(mark, begin)


@pytest.mark.parametrize("mark", ["decode_step", None])
def test_ranges_of_layers_are_no_steps(mark: str | None) -> None:
    loop = Loop()
    for _ in range(12):
        eager_step(loop, mark=mark, layer="layer")
    steps = steps_of(loop.sketch.trace())
    assert begins(steps) == loop.firsts
    assert steps.method == ("nvtx" if mark else "sequence")


def test_ranges_around_several_steps_or_around_some_are_no_marks() -> None:
    chunked, some = Loop(), Loop()
    for _ in range(4):
        begin = chunked.now
        for number in range(5):
            eager_step(chunked, mark=None)
            eager_step(some, mark="decode_step" if number % 3 else None)
        chunked.range("chunk", begin)
    for loop in (chunked, some):
        steps = steps_of(loop.sketch.trace())
        assert steps.method == "sequence"
        assert begins(steps) == loop.firsts


def test_steps_of_varying_length_are_found_from_the_first_on() -> None:
    random, loop = Random(2), Loop()
    for _ in range(20):
        eager_step(loop, extra=random.randrange(6))
    assert begins(steps_of(loop.sketch.trace(), nvtx=False)) == loop.firsts


@pytest.mark.parametrize("nvtx", [True, False], ids=["nvtx", "no nvtx"])
def test_a_prefill_of_an_eager_program_is_labelled(nvtx: bool) -> None:
    loop = Loop()
    for number in range(20):
        if number == 8:
            loop.prefill(150)
        eager_step(loop)
    steps = steps_of(loop.sketch.trace(), nvtx=nvtx)
    found = begins(steps)
    assert found[:8] + found[9:] == loop.firsts[:8] + loop.firsts[9:]
    assert reasons(steps)[7:9].count("prefill") == 1
    assert reasons(steps).count(None) == 18


def test_a_cycle_that_holds_several_reads_is_doubted() -> None:
    loop = Loop()
    for number in range(32):
        if number % 4 == 3:
            loop.prefill(40, 20)
        eager_step(loop)
    trace = loop.sketch.trace()
    unmarked = steps_of(trace, nvtx=False)
    assert begins(unmarked) == loop.firsts or unmarked.confidence == "low"
    assert begins(steps_of(trace)) == loop.firsts
