"""Why a step changed, and when nothing is said about it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.delta.cause import Cause, cause_of, deltas_of, speed_between, untold, warming_ns
from bubblefinder.compare.delta.tracer import Delay, delays_of
from bubblefinder.compare.diff import diff
from tests.seeded import HEALTHY, Seed, report, trace
from tests.unit.compare.builders import MS, a_report, with_rows

if TYPE_CHECKING:
    from bubblefinder.compare.model import Change
    from bubblefinder.report.model import Report


@cache
def base() -> Report:
    return report(trace(HEALTHY))


@cache
def head() -> Report:
    return report(trace(Seed(slower="moe_up", factor=1.5), number=2))


@cache
def rows() -> list[Change]:
    return diff([base()], [head()]).changes


def delays() -> list[Delay]:
    return delays_of([base()], [head()])


def of(changes: list[Change]) -> Cause:
    return cause_of([base()], [head()], changes, delays(), speed_between([base()], [head()], delays()))


def test_a_longer_step_has_suspects() -> None:
    assert [one.name for one in of(rows()).suspects] == ["moe_up"]


@pytest.mark.parametrize(
    "kept", [frozenset(), frozenset({"step.duration.p95"}), frozenset({"waits.per_step"})], ids=str
)
def test_where_the_mean_step_did_not_move_nobody_is_suspected(kept: frozenset[str]) -> None:
    changes = [replace(row, status="worse" if row.metric in kept else "same") for row in rows()]
    cause = of(changes)
    assert cause.suspects == ()
    assert cause.excuse is None
    assert len(cause.deltas) == 1


def test_reports_without_accounts_say_so_and_are_compared_all_the_same() -> None:
    old = replace(head(), detail=replace(head().detail, accounts=[]))
    result = diff([base()], [old])
    assert (result.verdict, result.deltas, result.suspects, result.speed) == ("regression", [], [], None)
    assert any("without accounts" in warning for warning in result.warnings)
    assert deltas_of([a_report()], [a_report()], []) == []
    assert speed_between([a_report()], [a_report()], []) is None


def test_reports_that_tell_no_launch_shapes_say_so() -> None:
    roles = [replace(role, shapes=None) for role in head().detail.accounts[0].roles]
    account = replace(head().detail.accounts[0], roles=roles)
    plain = replace(head(), detail=replace(head().detail, accounts=[account]))
    assert list(untold([base()], [head()])) == []
    assert "give the captures" in next(untold([base()], [plain]))
    assert diff([base()], [plain]).suspects[0].name == "moe_up"


def cold(first: int) -> Report:
    report = a_report(jitter=0.0)
    longer = [
        replace(row, duration_ns=row.duration_ns + 3 * MS, busy_ns=row.busy_ns + 3 * MS) if row.index < first else row
        for row in report.steps.rows
    ]
    return with_rows(report, longer)


@pytest.mark.parametrize(("first", "excess"), [(0, 0), (1, 0), (5, 3 * MS * 5 / 30), (20, 0)])
def test_the_excess_of_the_first_steps_is_told(first: int, excess: float) -> None:
    assert warming_ns([a_report(jitter=0.0)], [cold(first)]) == pytest.approx(excess)
    assert warming_ns([cold(first)], [a_report(jitter=0.0)]) == pytest.approx(-excess)
