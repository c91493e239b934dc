"""The host's side: threads that launch or wait, named, and no more bars than fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubblefinder.report.detail import host
from tests.unit.report.detail.analysed import loop

if TYPE_CHECKING:
    import pytest


def test_long_lists_keep_the_longest_and_count_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    one = loop()
    span = (int(one.decode["start_ns"][0]), int(one.decode["end_ns"][0]))
    every, none = host.host_bars(one, one.rank, span, set())
    calls = [bar for bar in every if bar.kind != "nvtx"]
    assert none == 0
    monkeypatch.setattr(host, "MAX_CALLS", 2)
    bars, dropped = host.host_bars(one, one.rank, span, set())
    kept = [bar.end_ns - bar.start_ns for bar in bars if bar.kind != "nvtx"]
    assert dropped == len(calls) - 2
    assert sorted(kept) == sorted(bar.end_ns - bar.start_ns for bar in calls)[-2:]


def test_only_launches_of_the_step_are_linked() -> None:
    one = loop()
    span = (int(one.decode["start_ns"][0]), int(one.decode["end_ns"][0]))
    bars, _ = host.host_bars(one, one.rank, span, set())
    assert [bar for bar in bars if bar.link is not None] == []
    assert "launch" in {bar.kind for bar in bars}


def test_a_thread_is_named_with_its_id() -> None:
    one = loop()
    thread = int(one.timeline.calls["thread"][0])
    assert host.thread_title(one.timeline, thread).split()[-1] == str(thread & 0xFFFFFF)
