"""Which runs make up the normal, and which don't."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.history import (
    Failure,
    accept,
    add,
    add_failed,
    baseline,
    normal_reports,
    prune,
    run,
    runs,
    spreads,
    values,
)
from bubblefinder.compare.store import open_store
from bubblefinder.errors import CannotAnswerError, UsageError
from tests.unit.compare.builders import MS, a_report, with_rows, with_steps, with_trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlite_utils import Database

    from bubblefinder.report.model import Report


def labelled(report: Report, label: str = "nightly", **meta: str) -> Report:
    return replace(report, run=replace(report.run, label=label, meta=meta))


STEP = ("step.duration.p50", (("rank", 0),))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_store(tmp_path / "history.sqlite", create=True) as opened:
        yield opened


def test_a_run_remembers_what_it_measured_and_where_it_came_from(database: Database) -> None:
    report = replace(a_report(), run=replace(a_report().run, label="nightly", commit="abc", meta={"batch": "1"}))
    stored = add(database, report)
    assert (stored.label, stored.commit, stored.state, stored.steps) == ("nightly", "abc", "ok", 30)
    assert stored.facts["batch"] == "1"
    assert stored.facts["verify nodes"] == "1690"
    assert values(database, stored.id)[STEP] == report.steps.per_step["duration"].p50


def test_the_same_report_is_stored_once(database: Database) -> None:
    report = a_report()
    assert add(database, report) == add(database, report)
    assert len(runs(database)) == 1


def test_a_slower_run_raises_an_alarm_and_does_not_feed_the_baseline(database: Database) -> None:
    for seed in range(3):
        assert add(database, a_report(seed=seed)).state == "ok"
    for seed in range(3, 6):
        stored = add(database, a_report(seed=seed, host_late=2 * MS))
        assert stored.state == "alarm"
        assert "against 6.87 ms in 3 runs of the history" in (stored.reason or "")
    assert baseline(database, a_report(seed=9)).captures == 3


def test_an_accepted_run_is_the_new_normal(database: Database) -> None:
    for seed in range(3):
        add(database, a_report(seed=seed))
    alarm = add(database, a_report(seed=3, host_late=2 * MS))
    assert accept(database, alarm.id).state == "accepted"
    normal = baseline(database, a_report(seed=9))
    assert normal.captures == 1
    assert add(database, a_report(seed=4, host_late=2 * MS)).state == "ok"
    assert baseline(database, a_report(seed=9)).captures == 2


@pytest.mark.parametrize("other", ["label", "mode", "gpu", "ranks"])
def test_only_runs_of_one_kind_make_a_baseline(database: Database, other: str) -> None:
    report = a_report()
    add(database, report)
    others = {
        "label": replace(report, run=replace(report.run, label="other")),
        "mode": a_report(mode="graph", intra_graph=None),
        "gpu": with_trace(report, gpus=[replace(report.trace.gpus[0], name="NVIDIA B200")]),
        "ranks": a_report(ranks=2),
    }
    assert baseline(database, others[other]).captures == 0


def test_a_report_is_not_its_own_baseline(database: Database) -> None:
    report = a_report()
    add(database, report)
    assert baseline(database, report).captures == 0


def test_the_history_knows_the_spread_between_captures(database: Database) -> None:
    for seed, late in enumerate((3_000_000, 3_100_000, 2_900_000)):
        add(database, a_report(seed=seed, host_late=late, jitter=0.0))
    spread = spreads(database, a_report(seed=9))[STEP]
    assert spread.degrees == 2
    assert spread.squares == pytest.approx(2 * 100_000**2)


def test_pruning_keeps_the_newest_of_every_label(database: Database) -> None:
    for seed in range(4):
        add(database, a_report(seed=seed))
    labelled = replace(a_report(), run=replace(a_report().run, label="weekly"))
    add(database, labelled)
    assert prune(database, keep=2) == 2
    assert [(r.id, r.label) for r in runs(database)] == [(3, ""), (4, ""), (5, "weekly")]
    assert values(database, 1) == {}


def test_what_is_not_there_is_told(database: Database) -> None:
    with pytest.raises(UsageError, match="no run 7"):
        run(database, 7)
    with pytest.raises(CannotAnswerError, match="without measured steps"):
        add(database, with_steps(a_report(), by_device=[], rows=[], count=0))
    with pytest.raises(CannotAnswerError, match="without measured steps"):
        add(database, a_report(mode="unseen"))


def test_a_failed_run_says_why_and_feeds_nothing(database: Database) -> None:
    failed = add_failed(database, None, Failure("cut.sqlite", "it is cut short", "nightly", "a1"))
    assert (failed.state, failed.reason, failed.steps, failed.commit) == ("failed", "it is cut short", 0, "a1")
    unseen = labelled(a_report(mode="unseen"))
    add_failed(database, unseen, Failure("unseen", "nothing measured", "nightly"))
    assert [r.state for r in runs(database)] == ["failed", "failed"]
    assert baseline(database, labelled(a_report())).captures == 0
    assert values(database, failed.id) == {}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (a_report(ranks=2), "ranks 2 there and 1 here"),
        (a_report(mode="graph", intra_graph=None), "capture mode graph there and node here"),
        (
            replace(a_report(seed=2), definitions=7),
            "model – there and ling here; numbers of two definitions mean different things",
        ),
        (labelled(a_report(seed=2), model="other"), "model other there and ling here"),
    ],
    ids=["ranks", "mode", "definitions", "model"],
)
def test_what_sets_the_runs_of_a_label_apart_is_told(database: Database, other: Report, said: str) -> None:
    add(database, labelled(other, **other.run.meta))
    known = baseline(database, labelled(a_report(), model="ling"))
    assert known.captures == 0
    assert said in known.unlike
    assert known.unlike.startswith("run 1 of this label is of another kind: ")


def test_a_first_run_is_of_no_kind(database: Database) -> None:
    assert baseline(database, labelled(a_report())).unlike == ""


def test_nothing_is_alarmed_across_definitions(database: Database) -> None:
    for seed in range(3):
        add(database, labelled(a_report(seed=seed)))
    slower = labelled(a_report(seed=9, busy=9 * MS))
    assert add(database, replace(slower, definitions=2)).state == "ok"
    assert add(database, slower).state == "alarm"


def test_stalls_that_leave_the_median_are_an_alarm(database: Database) -> None:
    for seed in range(3):
        add(database, labelled(a_report(seed=seed, steps=60)))
    report = a_report(seed=9, steps=60)
    rows = [replace(r, duration_ns=r.duration_ns + 12 * MS) if r.index in {7, 21, 40} else r for r in report.steps.rows]
    run = add(database, labelled(with_rows(report, rows)))
    assert run.state == "alarm"
    assert str(run.reason).startswith("the mean step takes 7.")


def test_the_reports_of_the_last_runs_come_back_as_they_were(database: Database) -> None:
    stored = [labelled(a_report(seed=seed)) for seed in range(5)]
    for report in stored:
        add(database, report)
    assert normal_reports(database, labelled(a_report(seed=9))) == stored[2:]
