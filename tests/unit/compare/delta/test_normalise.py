"""A slower machine is no slower program."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bubblefinder.compare.delta.normalise import accounted_for, held_up, slower_machine
from bubblefinder.compare.model import Change, Measured
from tests.unit.compare.delta.parts import a_speed

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


def test_a_host_that_is_slower_by_as_much_accounts_for_it() -> None:
    told = accounted_for(step(1_000, 1_900), a_speed(1.9, host_ns=1_000 * US), alone=True)
    assert told is not None
    assert told.startswith("the host was 1.9 times slower in head on the 6 kinds of calls that both make")
    faster = accounted_for(step(1_900, 1_000), a_speed(1 / 1.9, host_ns=1_900 * US), alone=True)
    assert faster is not None
    assert "1.9 times faster" in faster


def test_a_change_that_is_larger_is_the_programs() -> None:
    assert accounted_for(step(1_000, 2_400), a_speed(1.3, host_ns=1_000 * US), alone=True) is None


def test_a_host_of_the_same_speed_excuses_nothing() -> None:
    assert accounted_for(step(1_000, 1_900), a_speed(1.05, host_ns=1_000 * US), alone=True) is None
    assert accounted_for(step(1_000, 1_900), a_speed(None, None), alone=True) is None
    assert accounted_for(step(1_000, 1_900), None, alone=True) is None


@pytest.mark.parametrize(("ratio", "excused"), [(1.2, False), (1.5, True)])
def test_several_captures_a_side_need_a_host_that_is_another_beyond_doubt(ratio: float, excused: bool) -> None:
    rows = step(1_000, 1_000 * ratio)
    assert (accounted_for(rows, a_speed(ratio, host_ns=1_000 * US), alone=False) is not None) is excused


def test_a_gpu_of_another_clock_accounts_for_longer_kernels() -> None:
    told = accounted_for(step(1_000, 1_100, busy=(990, 1_089)), a_speed(1.0, 1.1), alone=True)
    assert told is not None
    assert told.startswith("the GPU was 1.100 times slower in head")
    assert accounted_for(step(1_000, 1_400, busy=(990, 1_389)), a_speed(1.0, 1.1), alone=True) is None


def test_counts_have_no_speed_and_what_did_not_move_needs_no_excuse() -> None:
    count = a_change("waits.per_step", 1, 3, threshold=0.1, gated=True)
    assert accounted_for([*step(1_000, 1_900), count], a_speed(1.9, host_ns=1_000 * US), alone=True) is None
    assert accounted_for(step(1_000, 1_000), a_speed(1.9), alone=True) is None


def test_a_slower_machine_that_accounts_for_part_is_told() -> None:
    assert slower_machine(a_speed(1.5), US, on_host=True).startswith("The host was 1.5 times slower in head")
    assert slower_machine(a_speed(1.2), US, on_host=True) == ""
    assert "the GPU was 1.050 times slower" in slower_machine(a_speed(1.6, 1.05), US, on_host=True)
    assert slower_machine(None, US, on_host=True) == ""


def test_a_speed_that_moved_the_step_the_other_way_or_not_at_all_is_not_told() -> None:
    assert slower_machine(a_speed(0.5), US, on_host=True) == ""
    assert slower_machine(a_speed(0.5), -US, on_host=True).startswith("The host was 2.0 times faster in head")
    assert slower_machine(a_speed(1.5), US, on_host=False) == ""


def test_nodes_that_all_begin_later_account_for_a_change_whatever_the_host_does() -> None:
    later = replace(a_speed(0.6, host_ns=800 * US), later_ns=355.0, replayed=559.0)
    told = accounted_for(step(2_285, 2_472), later, alone=True)
    assert told is not None
    assert told.startswith("every node of a replay began 355 ns later in head")
    assert "host" not in told
    assert accounted_for(step(2_285, 2_700), later, alone=True) is None


def test_a_thread_that_is_held_up_where_the_step_is_longer_is_said_to_be() -> None:
    held = replace(a_speed(), head_held=1.9)
    assert str(held_up(held, US)).startswith("the thread that launches was held up in head: its calls take 1.9 times")
    assert held_up(held, -US) is None
    assert "held up in base" in str(held_up(replace(a_speed(), base_held=2.0), -US))
    assert held_up(replace(a_speed(), base_held=1.2, head_held=1.5), US) is None
