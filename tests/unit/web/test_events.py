from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.web import events
from bubblefinder.web.events import BINS, MAX_BARS, MAX_TRACKS, Events, lanes, window, write_tracks

if TYPE_CHECKING:
    from collections.abc import Sequence

SPANS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 60)).map(lambda p: (p[0], p[0] + p[1])), min_size=1, max_size=40
)


def track(spans: Sequence[tuple[int, int]], title: str = "t", names: Sequence[int] | None = None) -> Events:
    start, end = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    return Events(
        "gpu", title, start, end, np.array(names or [0] * len(spans), np.int32), np.zeros(len(spans), np.uint8)
    )


def shown(spans: Sequence[tuple[int, int]], start: int, end: int) -> dict[str, Any]:
    """The one track of a window, written and read."""
    with tempfile.TemporaryDirectory() as place:
        write_tracks([track(spans)], ["k"], ["kernel"], Path(place) / "e")
        (drawn,) = window(Path(place) / "e", start, end)["tracks"]
        return dict(drawn)


@given(SPANS, st.integers(-50, 450), st.integers(1, 3))
def test_shares_are_the_exact_coverage_of_every_slice(spans: list[tuple[int, int]], start: int, width: int) -> None:
    covered = np.zeros(5000, bool)
    for begin, end in spans:
        covered[begin + 100 : end + 100] = True
    slices = covered[start + 100 : start + 100 + BINS * width].reshape(BINS, width)
    with mock.patch.multiple(events, MAX_BARS=-1, _LEAST_BARS=-1, _BLOCK=4):
        drawn = shown(spans, start, start + BINS * width)
    assert drawn["shares"] == [1000 * int(one.sum()) // width for one in slices]


@given(SPANS, st.integers(-50, 450), st.integers(1, 200))
def test_bars_are_all_that_touch_the_window_and_no_others(
    spans: list[tuple[int, int]], start: int, length: int
) -> None:
    with mock.patch.object(events, "_BLOCK", 4):
        drawn = shown(spans, start, start + length)
    expected = sorted((a, b) for a, b in spans if a < start + length and b > start)
    assert sorted((start + bar[0], start + bar[0] + bar[1]) for bar in drawn["bars"]) == expected


@given(SPANS)
def test_lanes_keep_every_event_and_put_children_below_their_parents(spans: list[tuple[int, int]]) -> None:
    split = list(lanes(track(spans)))
    together = sorted(pair for lane in split for pair in zip(lane.start_ns.tolist(), lane.end_ns.tolist(), strict=True))
    assert together == sorted(spans)
    for lane in split[:5]:
        assert (lane.start_ns[1:] >= lane.end_ns[:-1]).all()


def test_nested_ranges_take_a_lane_a_depth() -> None:
    split = list(lanes(track([(0, 100), (10, 40), (15, 20), (50, 90)], "NVTX")))
    assert [lane.title for lane in split] == ["NVTX", "NVTX (2)", "NVTX (3)"]
    assert [lane.start_ns.tolist() for lane in split] == [[0], [10, 50], [15]]


def test_a_window_names_only_what_it_shows(tmp_path: Path) -> None:
    write_tracks(
        [track([(0, 10), (20, 30), (40, 50)], names=[2, 0, 1])], ["zero", "one", "two"], ["kernel"], tmp_path / "e"
    )
    shown = window(tmp_path / "e", 15, 45)
    assert shown["names"] == ["zero", "one"]
    assert shown["tracks"][0]["bars"] == [[5, 10, 0, 0, -1], [25, 10, 1, 0, -1]]
    assert (shown["start_ns"], shown["end_ns"], shown["capture"]) == (15, 45, [0, 50])


def test_without_moments_a_window_is_the_whole_capture(tmp_path: Path) -> None:
    write_tracks([track([(5, 10), (20, 30)])], ["k"], ["kernel"], tmp_path / "e")
    shown = window(tmp_path / "e", None, None)
    assert (shown["start_ns"], shown["end_ns"]) == (5, 30)
    assert len(shown["tracks"][0]["bars"]) == 2


def test_a_capture_without_events_has_an_empty_window(tmp_path: Path) -> None:
    write_tracks([], [], [], tmp_path / "e")
    assert window(tmp_path / "e", None, None)["tracks"] == []


def test_times_beyond_a_double_stay_exact(tmp_path: Path) -> None:
    base = (1 << 62) + 1
    write_tracks([track([(base, base + 3)])], ["k"], ["kernel"], tmp_path / "e")
    assert window(tmp_path / "e", base, base + 10)["tracks"][0]["bars"] == [[0, 3, 0, 0, -1]]


def test_a_window_of_two_million_events_on_many_tracks_stays_small(tmp_path: Path) -> None:
    count = 40_000
    start = np.arange(count, dtype=np.int64) * 1000
    names = [f"kernel {number} " + "x" * 4000 for number in range(20_000)]
    ids = (np.arange(count) % len(names)).astype(np.int32)
    tracks = [
        Events("gpu", f"track {n}", start, start + 900, ids, np.zeros(count, np.uint8)) for n in range(MAX_TRACKS + 5)
    ]
    write_tracks(tracks, names, ["kernel"], tmp_path / "e")
    for begin, end in ((None, None), (0, 100_000), (0, 124_000), (10_000_000, 10_500_000)):
        shown = window(tmp_path / "e", begin, end)
        assert len(shown["tracks"]) == MAX_TRACKS
        assert shown["dropped"] == 5
        assert sum(len(one.get("bars", ())) for one in shown["tracks"]) <= MAX_BARS
        assert len(json.dumps(shown)) < 1_000_000


def test_names_from_a_capture_are_cut_and_cleaned(tmp_path: Path) -> None:
    write_tracks([track([(0, 1)])], ["a\x1b[31m\u202e" + "b" * 500], ["kernel"], tmp_path / "e")
    (name,) = window(tmp_path / "e", None, None)["names"]
    assert len(name) <= 96
    assert "\x1b" not in name
    assert "\u202e" not in name


def test_steps_touch_their_window_and_too_many_are_none(tmp_path: Path) -> None:
    steps = [(number * 10, number * 10 + 10, number) for number in range(1_000)]
    write_tracks([track([(0, 10_000)])], ["k"], ["kernel"], tmp_path / "e", steps)
    assert window(tmp_path / "e", 15, 31)["steps"] == [[-5, 10, 1], [5, 10, 2], [15, 10, 3]]
    assert window(tmp_path / "e", None, None)["steps"] == []


def test_events_of_another_layout_are_not_read(tmp_path: Path) -> None:
    write_tracks([track([(0, 10)])], ["k"], ["kernel"], tmp_path / "e")
    index = tmp_path / "e" / "index.json"
    index.write_text(index.read_text().replace(f'"layout": {events.LAYOUT}', '"layout": 1'))
    with pytest.raises(ValueError, match="1"):
        window(tmp_path / "e", None, None)


def test_of_many_tracks_the_leading_ones_are_kept(tmp_path: Path) -> None:
    one = np.zeros(1, np.int64)
    tracks = [
        Events("gpu", f"track {n}", one, one + 9, one.astype(np.int32), one.astype(np.uint8), is_leading=n == 90)
        for n in range(100)
    ]
    write_tracks(tracks, ["a"], ["kernel"], tmp_path / "events")
    shown = window(tmp_path / "events", None, None)
    assert "track 90" in {track["title"] for track in shown["tracks"]}
    assert (len(shown["tracks"]), shown["dropped"]) == (MAX_TRACKS, 100 - MAX_TRACKS)
