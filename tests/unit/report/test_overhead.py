from __future__ import annotations

from bubblefinder.overhead.model import Source
from bubblefinder.pipeline import Analysis
from bubblefinder.report import json
from bubblefinder.report.ledgers import decode_rows, windows_with_ledger
from bubblefinder.report.model import OverheadReport
from bubblefinder.report.overhead import overhead_report
from bubblefinder.timeline.rank import Rank
from tests.unit.replay.taxed import PROCESS, Loop, Tax, on_h200


def section(source: Source, cupti: str | None = "13.0") -> OverheadReport:
    found = Analysis(on_h200(Loop(Tax(node=130), 100, reads=True).run(8), cupti))
    rows = decode_rows(windows_with_ledger(found.timeline, found.steps), Rank(0, PROCESS))
    return overhead_report(found.timeline, found.steps, found.model, rows, source)


def test_raw_and_corrected_stand_side_by_side() -> None:
    found = section(Source())
    assert found.method == "assumed"
    assert found.traced_step_ns is not None
    assert found.corrected_step_ns is not None
    assert found.corrected_step_ns < found.traced_step_ns
    assert found.range_ns is not None
    assert found.range_ns[0] <= found.corrected_step_ns <= found.range_ns[1]
    assert list(found.corrected_roles) == ["draft", "verify", "draft-extend"]
    assert found.corrected_bubble_share is not None
    assert set(found.corrected_bubble_share_range) == {"intra_graph", "inter_graph", "total"}


def test_an_unknown_collector_leaves_everything_null() -> None:
    found = section(Source(), cupti=None)
    assert found.method == "none"
    assert found.corrected == {}
    assert found.corrected_bubble_share is None
    assert found.message


def test_it_is_written_as_json() -> None:
    import msgspec

    for found in (section(Source()), section(Source(untraced_step_ns=1e6)), section(Source(), cupti=None)):
        assert msgspec.json.decode(msgspec.json.encode(found), type=OverheadReport) == found
    assert "corrected_bubble_share_range" in str(json.json_schema())
