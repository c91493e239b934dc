from __future__ import annotations

from random import Random

import pytest

from bubblefinder.trace.model import MEMCPY
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


def test_a_blocking_upload_begins_a_step_and_does_not_end_it() -> None:
    loop = Loop()
    for _ in range(10):
        loop.spend(300)
        begin = loop.now
        loop.now += 12_000
        upload = loop.sketch.call("cudaMemcpyAsync_v3020", begin, loop.now, loop.key())
        sides = {"copy_kind": 1, "src_kind": 0, "dst_kind": 2, "bytes": 4096}
        loop.firsts.append(loop.run(MEMCPY, 1, upload, **sides))
        loop.sketch.rows["calls"][-1]["end_ns"] = loop.now = loop.free + 1_000
        for _layer in range(12):
            for name in ("norm", "qkv", "attention", "mlp"):
                loop.kernel(name, 8)
        loop.read()
    steps = steps_of(loop.sketch.trace(), nvtx=False)
    assert begins(steps) == loop.firsts


def test_copies_alone_make_no_steps() -> None:
    loop = Loop()
    loop.kernel("init", 20)
    for number in range(60):
        loop.upload(4096 if number % 2 else 64)
    assert steps_of(loop.sketch.trace()).method == "none"


def test_pages_that_migrate_are_no_steps_and_hide_none() -> None:
    random, loop = Random(4), Loop()
    migration = {"process": loop.process, "bytes": 4096, "copy_kind": 11, "src_kind": 0, "dst_kind": 2}
    for _ in range(12):
        eager_step(loop)
        for _ in range(random.randrange(30)):
            loop.free += 3_000
            loop.sketch.operation(MEMCPY, loop.free - 2_000, loop.free, **migration)
    assert begins(steps_of(loop.sketch.trace(), nvtx=False)) == loop.firsts


@pytest.mark.parametrize("sizes", [(1, 4), (1, 2, 4)], ids=str)
def test_batches_that_alternate_make_no_longer_step(sizes: tuple[int, ...]) -> None:
    loop = Loop()
    for number in range(24):
        loop.spend(300)
        begin = loop.now
        loop.firsts.append(loop.upload(64 * sizes[number % len(sizes)]))
        for _ in range(8):
            for name in ("norm", f"gemm_{sizes[number % len(sizes)]}", "attention"):
                loop.kernel(name, 8)
        loop.kernel("sample", 5)
        loop.read(8 * sizes[number % len(sizes)])
        loop.range("decode_step", begin)
    trace = loop.sketch.trace()
    unmarked = steps_of(trace, nvtx=False)
    assert begins(unmarked) == loop.firsts
    assert unmarked.confidence == "low"
    assert begins(steps_of(trace)) == loop.firsts


@pytest.mark.parametrize("seed", range(4))
def test_layers_are_no_steps_however_many_prefills_come_between(seed: int) -> None:
    random, loop = Random(seed), Loop(seed=seed)
    for _ in range(30):
        if random.random() < 0.2:
            loop.prefill(60, 20)
        eager_step(loop, mark=None, layer="layer")
    for nvtx in (True, False):
        assert len(begins(steps_of(loop.sketch.trace(), nvtx=nvtx))) == 30


def test_a_step_ends_at_the_last_of_its_reads() -> None:
    loop = Loop()
    for _ in range(12):
        loop.spend(600)
        loop.firsts.append(loop.upload())
        for _layer in range(6):
            loop.kernel("layer", 20)
        loop.read(32)
        loop.kernel("argmax", 4)
        loop.read(4)
    assert begins(steps_of(loop.sketch.trace())) == loop.firsts
