from __future__ import annotations

from typing import TYPE_CHECKING

from bubblefinder.replay.predict import predict
from bubblefinder.replay.record import FEWEST_STEPS, MOST_LAUNCHES, find_blocks, span_of_steps
from tests.judged import Judged, drawn, judge
from tests.loops import Loop
from tests.unit.causes.test_role_facts import NODES

if TYPE_CHECKING:
    import pytest


def looped(steps: int) -> Judged:
    loop = Loop(jitter=0.0)
    for _ in range(steps):
        loop.step()
    return judge(loop.sketch.trace())


def test_a_replay_is_one_block_with_its_inside_and_an_operation_is_another() -> None:
    judged = drawn(NODES)
    span = span_of_steps(judged.timeline, judged.steps, judged.causes)
    blocks = find_blocks(judged.timeline, judged.causes, span)
    first = blocks.row(0, named=True)
    assert (first["kind"], first["nodes"], first["intra_ns"]) == ("graph", 2, 2_000)
    assert (first["end_ns"] - first["start_ns"], first["op_index"]) == (6_000, 0)
    assert len(blocks) == 2 * 5


def test_the_middle_of_a_long_capture_is_replayed_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bubblefinder.replay.record.MOST_LAUNCHES", 100)
    judged = looped(60)
    model = judged.model
    assert model is not None
    assert FEWEST_STEPS <= len(model.windows) < 40
    decode = judged.steps.windows["excluded"].null_count()
    assert model.left_out == decode - len(model.windows)
    start, end = span_of_steps(judged.timeline, judged.steps, judged.causes)
    device = judged.timeline.devices[0]
    assert device.start_ns < start < end < device.end_ns
    (then,) = predict(model, []).values()
    assert f"{len(model.windows)} of {decode} steps are replayed, from the middle" in then.notes


def test_a_short_capture_is_replayed_whole() -> None:
    judged = looped(10)
    start, end = span_of_steps(judged.timeline, judged.steps, judged.causes)
    device = judged.timeline.devices[0]
    assert (start, end) == (device.start_ns, device.end_ns + 1)


def test_fewer_steps_are_replayed_where_a_step_has_very_many_launches() -> None:
    loop = Loop(jitter=0.0)
    launches = MOST_LAUNCHES // 20
    for _ in range(FEWEST_STEPS + 20):
        begin = loop.now
        loop.spend(300)
        for number in range(launches):
            loop.kernel(f"kernel_{number % 9}", 5)
        loop.read()
        loop.range("decode_step", begin)
    judged = judge(loop.sketch.trace())
    model = judged.model
    assert model is not None
    assert FEWEST_STEPS <= len(model.windows) <= 21
