"""What a slice says of the capture that it was cut from is believed only as far as it can be."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import NotATraceError
from bubblefinder.report.build import analyze_trace
from bubblefinder.share.slice import write_slice
from bubblefinder.timeline.model import CaptureMode
from bubblefinder.trace.open import open_trace
from bubblefinder.trace.part import MODES
from tests.exports import export
from tests.judged import cut
from tests.loops import SPECULATIVE, Loop

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def part(tmp_path: Path) -> Path:
    loop = Loop()
    for _ in range(8):
        loop.step(SPECULATIVE)
    export(loop.sketch.trace(), tmp_path / "whole.sqlite")
    write_slice(tmp_path / "whole.sqlite", tmp_path / "part.sqlite", partial(cut, steps=(2, 5)))
    return tmp_path / "part.sqlite"


def changed(part: Path, statement: str) -> Path:
    with closing(sqlite3.connect(part)) as db, db:
        db.execute(statement)
    return part


def test_the_modes_are_those_of_the_timeline() -> None:
    assert set(MODES) == {mode.value for mode in CaptureMode}


def test_a_slice_says_that_it_is_one(part: Path) -> None:
    (note,) = (note for note in open_trace(part).notes if note.code == "slice")
    assert note.level == "info"
    assert "keep their index" in note.message


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE BUBBLEFINDER_PART SET captureMode = 'made up'",
        "UPDATE BUBBLEFINDER_STEPS SET excluded = 'made up'",
        "UPDATE BUBBLEFINDER_STEPS SET stepIndex = 1",
        "UPDATE BUBBLEFINDER_STEPS SET requests = -1",
        "UPDATE BUBBLEFINDER_RANKS SET method = '<script>'",
        "UPDATE BUBBLEFINDER_RANKS SET confidence = 'sure'",
        "UPDATE BUBBLEFINDER_RANKS SET requestsFrom = 'thin air'",
    ],
)
def test_what_cannot_be_is_refused_in_one_line(part: Path, statement: str) -> None:
    with pytest.raises(NotATraceError) as caught:
        analyze_trace(open_trace(changed(part, statement)))
    assert "\n" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM BUBBLEFINDER_STEPS",
        "DELETE FROM BUBBLEFINDER_ROLES",
        "ALTER TABLE BUBBLEFINDER_RANKS DROP COLUMN requestsFrom",
        "DROP TABLE BUBBLEFINDER_RANKS",
        "UPDATE BUBBLEFINDER_STEPS SET start = -start",
        "UPDATE BUBBLEFINDER_STEPS SET start = start + 1000000000000",
        "UPDATE BUBBLEFINDER_STEPS SET gpu = 7, process = 7",
        "UPDATE BUBBLEFINDER_RANKS SET gpu = 7",
        "UPDATE BUBBLEFINDER_STEPS SET start = 'soon'",
        "UPDATE BUBBLEFINDER_PART SET originNs = 1 << 60",
        "UPDATE BUBBLEFINDER_ROLES SET role = NULL, position = 'first'",
    ],
)
def test_a_damaged_slice_still_has_a_ledger_that_sums(part: Path, statement: str) -> None:
    report = analyze_trace(open_trace(changed(part, statement)))
    assert sum(device.busy_ns for device in report.devices) > 0
    for row in report.steps.rows:
        assert row.duration_ns >= 0
