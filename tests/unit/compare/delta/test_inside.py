"""What became of nodes and of work outside replays."""

from __future__ import annotations

from math import fsum

import pytest

from bubblefinder.compare.delta.inside import changed_work
from bubblefinder.compare.delta.side import Side, side_of
from tests.unit.compare.delta.accounts import STEPS, US, a_role, an_account, an_eager, shapes


def kinds(base: Side, head: Side) -> dict[str, float]:
    """What each kind adds a step, in microseconds."""
    leaves = list(changed_work(base, head))
    assert fsum((leaf.head_ns - leaf.base_ns) for leaf in leaves) == pytest.approx(head.mean_ns - base.mean_ns)
    found: dict[str, float] = {}
    for leaf in leaves:
        if leaf.head_ns - leaf.base_ns:
            found[leaf.kind] = round(found.get(leaf.kind, 0) + (leaf.head_ns - leaf.base_ns) / US, 3)
    return found


def side(*roles: object, **more: object) -> Side:
    return side_of([an_account(roles, **more)])  # type: ignore[arg-type]


BASE = side(a_role([0, 1, 2, 3]))


def test_nothing_changed() -> None:
    assert kinds(BASE, BASE) == {}


def test_the_same_kernels_longer() -> None:
    assert kinds(BASE, side(a_role([0, 1, 2, 3], us=9))) == {"same kernel": 4}


def test_another_kernel_in_the_same_place() -> None:
    head = side(a_role([0, 1, 4, 3]), names=("norm", "qkv", "gate", "up", "gate_fp32"))
    assert [leaf.head_name for leaf in changed_work(BASE, head) if leaf.kind == "another kernel"] == ["gate_fp32"]


def test_kernels_that_came_and_went() -> None:
    assert kinds(BASE, side(a_role([0, 1, 2, 2, 3]))) == {"new kernel": 8}
    assert kinds(BASE, side(a_role([0, 1, 3]))) == {"gone kernel": -8}


def test_another_launch_shape_says_how() -> None:
    base = side(a_role([0, 1], shapes=shapes("80x4", 2)))
    head = side(a_role([0, 1], us=10, shapes=shapes("20x4", 2, registers=64)))
    assert kinds(base, head) == {"launch shape": 4}
    told = [leaf.what for leaf in changed_work(base, head) if leaf.kind == "launch shape"]
    assert told == ["grid 80x4 to 20x4, 32 to 64 registers"] * 2


def test_a_side_that_tells_no_shapes_changed_none() -> None:
    assert kinds(side(a_role([0, 1])), side(a_role([0, 1], shapes=shapes("20", 2)))) == {}


def test_overlap_lost_and_gained() -> None:
    early, late = side(a_role([0, 1], early_us=2)), side(a_role([0, 1]))
    assert kinds(early, late) == {"overlap lost": 4}
    assert kinds(late, early) == {"overlap gained": -4}


def test_more_replays_a_step_are_told_apart_from_longer_ones() -> None:
    twice = a_role([0, 1], us=16, replays=2 * STEPS, counts=[2 * STEPS] * 2)
    assert kinds(side(a_role([0, 1])), side(twice)) == {"replays": 16}


def test_collectives_are_no_work_of_their_own() -> None:
    names = ("norm", "ncclDevKernel_AllReduce")
    base, head = side(a_role([0, 1]), names=names), side(a_role([0, 1], us=9), names=names)
    assert kinds(base, head) == {"same kernel": 1, "collective": 1}


def test_a_renamed_role_is_the_same_one() -> None:
    assert kinds(BASE, side(a_role([0, 1, 2, 3], role="decode", us=9))) == {"same kernel": 4}


def test_a_graph_that_falls_back_moves_to_eager_and_back() -> None:
    base = side(a_role([0, 1, 2, 3]), a_role([4], role="draft"), names=("norm", "qkv", "gate", "up", "draft"))
    head = side(
        a_role([4], role="draft"),
        names=("norm", "qkv", "gate", "up", "draft"),
        eager=[an_eager(number, 9) for number in range(4)],
    )
    assert kinds(base, head) == {"to eager": 4}
    assert kinds(head, base) == {"to graph": -4}


def test_a_replay_recorded_whole_moves_to_whatever_came() -> None:
    names = ("replay", "attn", "mlp", "DtoH copy")
    base = side(a_role([0], role="extend", us=10), names=names, eager=[an_eager(3, 1)])
    head = side(names=names, eager=[an_eager(1, 6), an_eager(2, 6), an_eager(3, 1)])
    assert kinds(base, head) == {"to eager": 2}


def test_work_outside_replays() -> None:
    base = side(eager=[an_eager(0, 5), an_eager(1, 5, shape="grid 4, block 32")])
    head = side(eager=[an_eager(0, 6), an_eager(1, 7, shape="grid 8, block 32"), an_eager(2, 1)])
    assert kinds(base, head) == {"same kernel": 1, "launch shape": 2, "new kernel": 1}
    assert kinds(head, base) == {"same kernel": -1, "launch shape": -2, "gone kernel": -1}


def test_many_replays_recorded_whole_against_one_are_compared_as_all_together() -> None:
    names = ("replay",)
    base = side(*(a_role([0, 0, 0], role=f"graph {number}", us=5) for number in range(40)), names=names)
    assert kinds(base, side(a_role([0], role="decode", us=9), names=names)) == {"same kernel": 9 - 40 * 3 * 5}
