"""The first suspect."""

from __future__ import annotations

from bubblefinder.compare.delta.suspect import WARM_UP, suspects
from tests.unit.compare.delta.parts import a_delta, a_part, a_speed

READ = "cudaMemcpyAsync DtoH in sample"


def test_nothing_changed_has_no_suspect() -> None:
    assert suspects([a_delta(a_part("same kernel", 50, "a"), a_part("same kernel", -50, "b"))], a_speed()) == []
    assert suspects([], a_speed()) == []


def test_what_explains_most_comes_first_and_trifles_are_left_out() -> None:
    found = suspects(
        [a_delta(a_part("same kernel", 200, "a"), a_part("launch shape", 800, "b"), a_part("call", 50, "c"))], a_speed()
    )
    assert [(one.kind, one.name, one.confidence) for one in found] == [
        ("launch shape", "b", "high"),
        ("same kernel", "a", "low"),
    ]
    assert found[0].share == 800 / 1050


def test_parts_of_one_cause_count_together() -> None:
    lost = [a_part("overlap lost", 100, name) for name in "abcd"]
    (first, *_) = suspects([a_delta(*lost, a_part("same kernel", 200, "e"))], a_speed())
    assert (first.kind, first.delta_ns) == ("overlap lost", 400)


def test_work_that_only_shows_belongs_to_the_wait_that_came() -> None:
    parts = [a_part("exposed", 143, "prepare"), a_part("new wait", 67, READ)]
    (only,) = suspects([a_delta(*parts)], a_speed())
    assert (only.kind, only.name, only.delta_ns, only.confidence) == ("new wait", READ, 210, "high")
    back = [a_part("exposed", -143, "prepare"), a_part("gone wait", -67, READ)]
    assert [one.kind for one in suspects([a_delta(*back)], a_speed())] == ["gone wait"]


def test_work_that_only_shows_stands_alone_where_nothing_came() -> None:
    (only,) = suspects([a_delta(a_part("exposed", 143, "prepare"))], a_speed())
    assert only.kind == "exposed"
    assert "no longer hidden" in only.sentence


def test_single_launches_cost_what_lies_between_them() -> None:
    parts = [
        a_part("to eager", 2, role="verify"),
        a_part("host work", 225, None, what="before kernel"),
        a_part("new call", 147, "cudaLaunchKernel", what="before kernel"),
    ]
    (only,) = suspects([a_delta(*parts)], a_speed())
    assert (only.kind, only.delta_ns) == ("to eager", 374)
    assert only.sentence.startswith("verify is no longer replayed as a graph")


def test_a_rank_that_comes_late_is_named_and_not_the_one_that_waits() -> None:
    waiting = a_delta(a_part("collective", 300, "ncclAllReduce"), rank=0)
    late = a_delta(a_part("host work", 299, "prepare"), rank=1)
    first = suspects([waiting, late], a_speed())[0]
    assert (first.kind, first.rank) == ("host work", 1)
    assert "on rank 1" in first.sentence


def test_what_all_ranks_have_is_told_without_a_rank() -> None:
    both = [a_delta(a_part("another kernel", 100, "a", head_name="b"), rank=rank) for rank in range(2)]
    (only,) = suspects(both, a_speed())
    assert only.rank == 0
    assert "rank" not in only.sentence


def test_symptoms_lead_only_where_there_is_nothing_else() -> None:
    (only,) = suspects([a_delta(a_part("queued", 100), a_part("call", 5, "x"))], a_speed())
    assert only.kind == "queued"


def test_a_gpu_of_another_clock_explains_all_kernels_at_once() -> None:
    parts = [a_part("same kernel", 30, name) for name in "abc"]
    (only,) = suspects([a_delta(*parts)], a_speed(gpu=1.1))
    assert (only.kind, only.delta_ns) == ("gpu speed", 90)


def test_a_capture_that_began_cold() -> None:
    parts = [a_part("same kernel", 30, name) for name in "abc"]
    (only,) = suspects([a_delta(*parts)], a_speed(), 80.0)
    assert (only.kind, only.confidence) == (WARM_UP, "high")
    assert "head's capture" in only.sentence
    (back,) = suspects([a_delta(a_part("same kernel", -90, "a"))], a_speed(), -50.0)
    assert (back.kind, back.confidence) == (WARM_UP, "medium")
    assert "base's capture" in back.sentence


def test_suspects_of_a_shorter_step_have_no_remedy() -> None:
    (only,) = suspects([a_delta(a_part("gone wait", -80, READ))], a_speed())
    assert only.remedy == ""
    assert "no longer waits" in only.sentence
