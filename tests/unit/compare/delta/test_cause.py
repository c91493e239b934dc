"""Why a step changed, and when nothing is said about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblefinder.compare.delta.build import deltas_of, speed_between, untold
from bubblefinder.compare.delta.cause import cause_of
from bubblefinder.compare.diff import diff
from tests.seeded import HEALTHY, Seed, report, trace
from tests.unit.compare.builders import a_report

BASE, HEAD = report(trace(HEALTHY)), report(trace(Seed(slower="moe_up", factor=1.5), number=2))
ROWS = diff([BASE], [HEAD]).changes


def test_a_longer_step_has_suspects() -> None:
    assert [one.name for one in cause_of([BASE], [HEAD], ROWS).suspects] == ["moe_up"]


@pytest.mark.parametrize(
    "kept", [frozenset(), frozenset({"step.duration.p95"}), frozenset({"waits.per_step"})], ids=str
)
def test_where_the_mean_step_did_not_move_nobody_is_suspected(kept: frozenset[str]) -> None:
    rows = [replace(row, status="worse" if row.metric in kept else "same") for row in ROWS]
    cause = cause_of([BASE], [HEAD], rows)
    assert cause.suspects == ()
    assert cause.excuse is None
    assert len(cause.deltas) == 1


def test_reports_without_accounts_say_so_and_are_compared_all_the_same() -> None:
    old = replace(HEAD, detail=replace(HEAD.detail, accounts=[]))
    result = diff([BASE], [old])
    assert (result.verdict, result.deltas, result.suspects, result.speed) == ("regression", [], [], None)
    assert any("without accounts" in warning for warning in result.warnings)
    assert deltas_of([a_report()], [a_report()]) == []
    assert speed_between([a_report()], [a_report()]) is None


def test_reports_that_tell_no_launch_shapes_say_so() -> None:
    roles = [replace(role, shapes=None) for role in HEAD.detail.accounts[0].roles]
    account = replace(HEAD.detail.accounts[0], roles=roles)
    plain = replace(HEAD, detail=replace(HEAD.detail, accounts=[account]))
    assert untold([BASE], [HEAD]) == []
    assert "give the captures" in untold([BASE], [plain])[0]
    assert diff([BASE], [plain]).suspects[0].name == "moe_up"
