"""A slice of any capture gives the ledger, the steps and the findings that analysing those steps of the whole gives."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import Options, analyze_trace, report_of
from bubblefinder.share.slice import write_slice
from bubblefinder.trace.open import open_trace
from tests import samples

if TYPE_CHECKING:
    from bubblefinder.report.model import Report

SAMPLES = sorted(
    path
    for path in (Path(__file__).parents[2] / "sample_traces").iterdir()
    if path.suffix == ".xz" or path.name.endswith(("_pqtdir", "_arwdir"))  # other folders hold slices themselves
)
EVERY = pytest.mark.parametrize("capture", SAMPLES, ids=lambda path: path.name)
SOME = pytest.mark.parametrize("capture", SAMPLES[::3], ids=lambda path: path.name)


def told(report: Report) -> dict[str, Any]:
    """All that a report says but for what it says of the file; rows are counted anew in a slice, times are not."""
    found: dict[str, Any] = msgspec.to_builtins(report)
    del found["trace"], found["quality"], found["steps"]["selection"]
    for finding in found["findings"]:
        for row in finding["evidence"]:
            del row["row"]
    return found


def part_of(capture: Path, window: tuple[int, int] | None = None, steps: tuple[int, int] | None = None) -> Analysis:
    """A part of a sample; what was found in the whole of it is taken from what was analysed already."""
    known = samples.analysis(capture.name)
    part = Analysis(known.trace, window, selected=steps)
    vars(part)["whole"] = known
    return part


def sliced(capture: Path, out: Path, part: Analysis, *, scrub: bool = False) -> Report:
    """The report on a slice that holds a part."""
    write_slice(capture, out, lambda _: part.part, scrub=scrub)
    return analyze_trace(open_trace(out))


@EVERY
def test_a_slice_of_steps_gives_what_those_steps_of_the_whole_give(capture: Path, tmp_path: Path) -> None:
    steps = samples.report(capture.name).steps
    if not steps.rows:
        assert steps.method == "none"
        return
    whole = {(row.gpu, row.pid, row.index): row for row in steps.rows}
    last = max(row.index for row in steps.rows if row.excluded is None)
    for number, asked in enumerate([(last // 2, last // 2 + 1), (0, 3)]):
        chosen = part_of(capture, steps=asked)
        part = report_of(chosen, Options(steps=asked))
        assert told(sliced(capture, tmp_path / f"{number}.sqlite", chosen, scrub=bool(number % 2))) == told(part)
        rows = [row for row in part.steps.rows if row.excluded is None]
        assert rows
        assert rows == [whole[row.gpu, row.pid, row.index] for row in rows]


@SOME
def test_a_slice_of_a_window_gives_what_that_window_of_the_whole_gives(capture: Path, tmp_path: Path) -> None:
    trace = samples.analysis(capture.name).trace
    starts = trace.operations["start_ns"] - trace.info.start_ns
    part = part_of(capture, (starts[len(starts) // 4], starts[len(starts) // 2]))
    assert told(sliced(capture, tmp_path / "part.sqlite", part)) == told(report_of(part))


@SOME
def test_a_scrubbed_capture_gives_what_it_gave_before(capture: Path, tmp_path: Path) -> None:
    write_slice(capture, tmp_path / "whole.sqlite", lambda whole: whole, scrub=True)
    before, after = samples.report(capture.name), analyze_trace(open_trace(tmp_path / "whole.sqlite"))
    assert told(after) == told(before)
    names = {field.name for field in dataclasses.fields(before.trace)} - {"name", "processes"}
    assert {name: getattr(after.trace, name) for name in names} == {name: getattr(before.trace, name) for name in names}
    assert [note for note in before.quality if note.level != "info"] == [
        note for note in after.quality if note.level != "info"
    ]
