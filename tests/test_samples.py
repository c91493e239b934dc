"""What tests share is what they would have found by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import report_of
from bubblefinder.trace import open as opening
from bubblefinder.trace.drawn import draw
from tests import samples
from tests.exports import export

if TYPE_CHECKING:
    from pathlib import Path

PICTURE = "api | A.B.C.D.\ngpu0 s7 | .A.B.C.D\n"
OTHER = "api | A.B.\ngpu0 s7 | .A.B\n"


def test_a_file_is_read_and_analysed_once_until_it_changes(tmp_path: Path) -> None:
    path = export(draw(PICTURE), tmp_path / "x.sqlite")
    with samples.read_once():
        trace = opening.open_trace(path)
        found = Analysis(trace).timeline
        assert opening.open_trace(path) is trace
        assert Analysis(trace).timeline is found
        assert Analysis(trace, window=(0, 1_000_000)).timeline is not found
        path.unlink()
        export(draw(OTHER), path)
        assert opening.open_trace(path) is not trace
    assert Analysis(trace).timeline is not found
    assert opening.open_trace(path) is not opening.open_trace(path)


def test_a_sample_is_one_however_it_is_called_and_says_what_it_says_alone() -> None:
    path = samples.path("nextn_before.graph")
    known = samples.analysis("nextn_before.graph")
    assert samples.analysis(path.name) is known
    with samples.read_once():
        shared = Analysis(opening.open_trace(path))
        assert shared.timeline is known.timeline
    assert report_of(Analysis(opening.open_trace(path))) == samples.report("nextn_before.graph")
