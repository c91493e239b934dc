"""A slower machine is no slower program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.compare.delta.normalise import accounted_for, left_out, slower_machine
from bubblefinder.compare.model import Change, Measured
from tests.unit.compare.delta.parts import a_speed

if TYPE_CHECKING:
    from bubblefinder.compare.delta.model import Speed

US = 1_000.0


def a_change(metric: str, base: float, head: float, *, threshold: float = 50 * US, **more: Any) -> Change:
    delta = head - base
    status = "same" if abs(delta) <= threshold else "worse" if delta > 0 else "better"
    fields: dict[str, Any] = {
        "metric": metric, "where": {"rank": 0}, "unit": "ns", "better": "lower",
        "base": Measured(value=base, captures=[base], steps=30),
        "head": Measured(value=head, captures=[head], steps=30),
        "delta": delta, "ratio": head / base, "threshold": threshold, "explained": False, "status": status,
        "gated": metric.startswith("step.duration"),
    }  # fmt: skip
    return Change(**(fields | more))


def step(base: float, head: float, *, busy: tuple[float, float] = (400, 400)) -> list[Change]:
    rows = [a_change("step.busy.mean", busy[0] * US, busy[1] * US), a_change("step.intra_graph.mean", 0.1, 0.1)]
    return [a_change("step.duration.mean", base * US, head * US), *rows]


def excuse(
    rows: list[Change], speed: Speed | None, *, alone: bool = True, on_host: bool = True, left_out: bool = False
) -> str | None:
    return accounted_for(rows, speed, alone=alone, on_host=on_host, left_out=left_out)


def test_a_host_that_is_slower_by_as_much_accounts_for_it() -> None:
    told = excuse(step(1_000, 1_900), a_speed(1.9, host_ns=1_000 * US))
    assert told is not None
    assert told.startswith("the host was 1.9 times slower in head on the 6 kinds of calls that both make")
    faster = excuse(step(1_900, 1_000), a_speed(1 / 1.9, host_ns=1_900 * US))
    assert faster is not None
    assert "1.9 times faster" in faster


def test_a_change_that_is_larger_is_the_programs() -> None:
    assert excuse(step(1_000, 2_400), a_speed(1.3, host_ns=1_000 * US)) is None


def test_a_host_of_the_same_speed_excuses_nothing() -> None:
    assert excuse(step(1_000, 1_900), a_speed(1.05, host_ns=1_000 * US)) is None
    assert excuse(step(1_000, 1_900), a_speed(None, None)) is None
    assert excuse(step(1_000, 1_900), None) is None


@pytest.mark.parametrize(("ratio", "excused"), [(1.2, False), (1.5, True)])
def test_several_captures_a_side_need_a_host_that_is_another_beyond_doubt(ratio: float, excused: bool) -> None:
    rows = step(1_000, 1_000 * ratio)
    assert (excuse(rows, a_speed(ratio, host_ns=1_000 * US), alone=False) is not None) is excused


def test_a_gpu_of_another_clock_accounts_for_longer_kernels() -> None:
    told = excuse(step(1_000, 1_100, busy=(990, 1_089)), a_speed(1.0, 1.1))
    assert told is not None
    assert told.startswith("the GPU was 1.100 times slower in head")
    assert excuse(step(1_000, 1_400, busy=(990, 1_389)), a_speed(1.0, 1.1)) is None


def test_counts_have_no_speed_and_what_did_not_move_needs_no_excuse() -> None:
    count = a_change("waits.per_step", 1, 3, threshold=0.1, gated=True)
    assert excuse([*step(1_000, 1_900), count], a_speed(1.9, host_ns=1_000 * US)) is None
    assert excuse(step(1_000, 1_000), a_speed(1.9)) is None


def test_a_slower_machine_that_accounts_for_part_is_told() -> None:
    assert slower_machine(a_speed(1.5), US, on_host=True).startswith("The host was 1.5 times slower in head")
    assert slower_machine(a_speed(1.2), US, on_host=True) == ""
    assert "the GPU was 1.050 times slower" in slower_machine(a_speed(1.6, 1.05), US, on_host=True)
    assert slower_machine(None, US, on_host=True) == ""


def test_a_speed_that_moved_the_step_the_other_way_or_not_at_all_is_not_told() -> None:
    assert slower_machine(a_speed(0.5), US, on_host=True) == ""
    assert slower_machine(a_speed(0.5), -US, on_host=True).startswith("The host was 2.0 times faster in head")
    assert slower_machine(a_speed(1.5), US, on_host=False) == ""


LATER = replace(a_speed(0.6, host_ns=800 * US), later_ns=355.0, held_back_ns=187 * US)


def test_nodes_that_all_begin_later_account_for_a_change_whatever_the_host_does() -> None:
    told = excuse(step(2_285, 2_472), LATER)
    assert told is not None
    assert told.startswith("every node of a replay began 355 ns later in head")
    assert "host" not in told
    assert excuse(step(2_285, 2_700), LATER) is None


def test_what_is_left_out_is_no_excuse_and_is_said_where_it_is_more_than_the_noise() -> None:
    rows = [a_change("step.duration.mean", 2_285 * US, 2_700 * US, tracer=187 * US)]
    assert excuse(rows, LATER, left_out=True) is None
    (note,) = left_out(rows, LATER)
    assert note.startswith(
        "Every node of a replay began 355 ns later in head, whatever it is: the tracer's doing, +187 us"
    )
    assert left_out([replace(rows[0], tracer=11 * US)], LATER) == []
    assert left_out([replace(rows[0], tracer=-187 * US)], replace(LATER, later_ns=-355.0))[0].count("sooner") == 1


def held(head: float, base: float = 1.0, *, pace: float = 1.0) -> Speed:
    times = 1_000 * US * base, 1_000 * US * pace * head
    return replace(a_speed(pace), head_held=head, base_held=base, base_host_ns=times[0], head_host_ns=times[1])


def test_a_thread_held_up_for_as_long_as_the_step_is_longer_accounts_for_it() -> None:
    told = str(excuse(step(1_000, 1_900), held(1.9)))
    assert told.startswith("the thread that launches was held up in head")
    assert "its calls take 1.9 times as long as their medians, against 1.0 times" in told
    assert "held up in base" in str(excuse(step(1_900, 1_000), held(1.0, 2.0, pace=1.0)))


@pytest.mark.parametrize(
    ("base", "head", "speed"),
    [
        (1_000, 2_400, held(1.3)),
        (1_000, 1_700, held(1.3)),
        (1_000, 1_090, held(1.05)),
        (1_900, 1_000, held(1.9)),
        (1_000, 1_900, held(1.5, 1.45)),
    ],
    ids=[
        "far more than it lost",
        "more than chance makes of it",
        "no more than captures differ",
        "on the shorter side",
        "both were",
    ],
)
def test_one_that_was_not_accounts_for_nothing(base: float, head: float, speed: Speed) -> None:
    assert excuse(step(base, head), speed) is None


def test_it_needs_the_host_in_the_change_and_one_capture_a_side() -> None:
    assert excuse(step(1_000, 1_900), held(1.9), on_host=False) is None
    assert excuse(step(1_000, 1_900), held(1.9), alone=False) is None


def test_a_slower_host_whose_thread_is_held_up_as_well_accounts_for_both() -> None:
    told = str(excuse(step(1_000, 1_900), held(1.2, pace=1.5)))
    assert "the host was 1.5 times slower" in told
    assert "held up in head" in told


def test_hold_ups_lie_in_few_steps_so_the_tail_can_take_all_of_them() -> None:
    tail = a_change("step.duration.p95", 1_000 * US, 9_000 * US)
    assert "held up" in str(excuse([*step(1_000, 1_000), tail], held(1.9)))
    further = a_change("step.duration.p95", 1_000 * US, 39_000 * US)
    assert excuse([*step(1_000, 1_000), further], held(1.9)) is None


def test_where_the_mean_moved_with_the_host_so_may_the_tail() -> None:
    tail = a_change("step.duration.p95", 2_000 * US, 4_500 * US)
    slower = a_speed(1.9, host_ns=1_000 * US)
    assert excuse([*step(1_000, 1_900), tail], slower) is not None
    assert excuse([*step(1_000, 1_900), tail], slower, alone=False) is None
    alike = a_change("step.duration.p95", 2_000 * US, 3_800 * US)
    assert excuse([*step(1_000, 1_900), alike], slower, alone=False) is not None


def test_a_program_ten_times_slower_is_not_excused_by_a_thread_held_up_half_of_the_time() -> None:
    assert excuse(step(1_000, 10_000), replace(held(2.0), head_host_ns=10_000 * US)) is None
