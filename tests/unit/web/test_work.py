from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from bubblefinder.web.work import analyse
from tests.unit.web.test_worker import analysis, done_here

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    Sample = Callable[[str], Path]


def test_the_report_and_the_drawn_timeline_come_from_one_timeline(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    said: list[str] = []
    analyse(analysis(sample("nextn_before.graph"), tmp_path), lambda **told: said.extend(told.values()), lambda _: None)
    assert said.count("timeline") == 1


def test_a_capture_of_whole_graphs_has_a_share_that_is_a_lower_bound(sample: Sample, tmp_path: Path) -> None:
    found = done_here(analysis(sample("nextn_before.graph"), tmp_path))
    assert found["at_least"] is True
    assert "bubble.share.total" not in found["metrics"]
    assert found["bubble_share"] == found["metrics"]["bubble.share.inter_graph"]
