from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.trace.open import open_trace
from bubblefinder.trace.quality import scrubbed, telling
from tests.unit.trace.rows import THREAD, save

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.trace.model import QualityNote


def said(tmp_path: Path, text: str, severity: int = 1, times: int = 1) -> list[QualityNote]:
    rows = [{"severity": severity, "text": text}] * times
    trace = open_trace(save(tmp_path / "x.sqlite", DIAGNOSTIC_EVENT=rows))
    return [note for note in trace.notes if note.code != "no-nvtx-ranges"]


@pytest.mark.parametrize(
    "text",
    [
        "CUPTI dropped 512 records",
        "Number of incomplete CUPTI events dropped: 4",
        "Couldn't allocate CUPTI bufer 3 times. Some CUPTI events may be missing",
        "Could not parse 7 CUPTI activity records",
        "Reached the size limit on recording trace events for this process",
        "Number of CUPTI events produced: 1513, CUPTI buffers: 49 of 50. Some CUPTI events might be missing.",
    ],
)
def test_lost_records_are_a_warning_at_any_severity(tmp_path: Path, text: str) -> None:
    (note,) = said(tmp_path, text)
    assert (note.code, note.level, note.count) == ("records-lost", "warn", 1)
    assert text in note.message


@pytest.mark.parametrize(
    "text",
    [
        "Number of incomplete CUPTI events dropped: 0",
        "Number of CUPTI events produced: 1513, CUPTI buffers: 50.",
        "Number of CUDA events collected: 99.",
        "Profiling has started.",
        "CUDA injection initialized successfully.",
    ],
)
def test_good_news_is_no_note(tmp_path: Path, text: str) -> None:
    assert said(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "code", "level"),
    [
        ("Not all CUDA events might have been collected.", "events-incomplete", "warn"),
        ("CUDA profiling might have not been started correctly.", "diagnostic", "warn"),
        ("No CUDA events collected. Does the process use CUDA?", "diagnostic", "info"),
        ("Unable to collect CPU kernel IP samples.", "other-diagnostics", "info"),
    ],
)
def test_warnings_are_sorted_and_counted(tmp_path: Path, text: str, code: str, level: str) -> None:
    assert [(note.code, note.level, note.count) for note in said(tmp_path, text, 2, 3)] == [(code, level, 3)]


ERROR = (
    "Error when processing events: Source ID=\nType=ErrorInformation (18)\n Error information:\n"
    " ProcessEventsError (4005)\n  Properties:\n"
    "   ErrorText (100)=/dvs/CUDA13.0/QuadD/StringStorage.cpp(119): Throw in function GetKeyForExteriorId\n"
    "[QuadDCommon::tag_message*] = Cannot find string for an exterior index\n"
)
"""What Nsight Systems 2025.3 says of a JAX program whose NVTX texts were registered before the capture began."""


def test_events_that_nsight_systems_could_not_read_are_an_error(tmp_path: Path) -> None:
    (note,) = said(tmp_path, ERROR, 2, 3)
    assert (note.code, note.level, note.count) == ("events-unread", "error", 3)
    assert telling(ERROR) == "Error when processing events"


def test_what_a_slice_keeps_of_such_an_error_is_one(tmp_path: Path) -> None:
    assert [note.code for note in said(tmp_path, telling(ERROR) or "", 2)] == ["events-unread"]


def test_an_export_without_diagnostics_is_unknown_and_not_clean(tmp_path: Path) -> None:
    notes = open_trace(save(tmp_path / "x.sqlite", schema="3.7")).notes
    assert [note.level for note in notes if note.code == "no-diagnostics"] == ["info"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see /home/ada/run/pid_1.log and ~/x/y.txt", "see <path> and <path>"),
        (r"loaded C:\Users\ada\tool.dll", "loaded <path>"),
        ("IP/backtrace samples and/or more", "IP/backtrace samples and/or more"),
        ("started with HF_TOKEN=hunter2 set", "started with <setting> set"),
        ("two\nlines\x1b[31m red", "two lines [31m red"),
        ("x" * 300, "x" * 199 + "…"),
    ],
)
def test_texts_are_shown_without_paths_settings_or_control_characters(text: str, shown: str) -> None:
    assert scrubbed(text) == shown


@pytest.mark.parametrize(("collected", "level"), [((2, 1), "info"), ((2,), "warn"), ((), "warn")])
def test_ranges_that_are_all_there_are_not_doubted(tmp_path: Path, collected: tuple[int, ...], level: str) -> None:
    rows = [{"severity": 2, "text": "Not all NVTX events might have been collected."}]
    rows += [{"severity": 1, "text": f"Number of NVTX events collected: \t{number}."} for number in collected]
    marks = [{"start": 1, "end": 2, "eventType": 59, "text": "step", "globalTid": THREAD}] * 3
    trace = open_trace(save(tmp_path / "x.sqlite", DIAGNOSTIC_EVENT=rows, NVTX_EVENTS=marks))
    assert [note.level for note in trace.notes if note.code == "events-incomplete"] == [level]
