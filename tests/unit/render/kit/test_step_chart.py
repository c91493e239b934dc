"""The chart of a step: lanes, exact times, arrows and drains."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bubblefinder.render.kit.step_chart import place_bars, step_chart
from bubblefinder.report.charts import StepTimeline, TimelineBar
from tests.unit.report.sample import sample_report

if TYPE_CHECKING:
    from bubblefinder.render.kit.figure import Figure


def bar(track: str, start: int, end: int, kind: str = "api", link: int | None = None, fill: float = 1.0) -> TimelineBar:
    return TimelineBar(track=track, kind=kind, name=kind, start_ns=start, end_ns=end, link=link, fill=fill)


def step(*bars: TimelineBar) -> StepTimeline:
    return StepTimeline(
        which="median", index=3, gpu=0, pid=1, start_ns=1_000_000, end_ns=3_000_000, bars=[*bars], dropped=0
    )


def step_timeline(timeline: StepTimeline) -> Figure:
    return step_chart([("", timeline)])


def test_bars_that_overlap_go_below_each_other_and_tracks_keep_their_order() -> None:
    placed, titles, depth = place_bars(step(bar("a", 0, 10), bar("a", 2, 4), bar("a", 4, 6), bar("b", 0, 1)))
    lanes = {(one.bar.track, one.bar.start_ns): one.y for one in placed}
    assert lanes["a", 0] - lanes["a", 2] == 1
    assert lanes["a", 2] == lanes["a", 4]
    assert lanes["b", 0] < lanes["a", 2]
    assert [track for track, _ in titles] == ["a", "b"]
    assert depth > 3


def test_times_are_exact_to_the_nanosecond() -> None:
    trace = step_timeline(step(bar("g", 1_234_567, 1_234_568, "queued")))["data"][0]
    assert (trace["base"], trace["x"]) == ([0.234567], [1e-06])
    assert trace["customdata"] == [["queued", "0.234567 ms into the step", "1 ns (1 ns)"]]


def test_bars_that_began_before_the_picture_are_cut_but_keep_their_times() -> None:
    trace = step_timeline(step(bar("h", 400_000, 1_500_000, "nvtx")))["data"][0]
    assert (trace["base"], trace["x"]) == ([0.0], [0.5])
    assert trace["customdata"][0][2] == "1.10 ms (1,100,000 ns)"


def test_an_early_launch_widens_the_picture_and_its_arrow_leads_to_the_replay() -> None:
    figure = step_timeline(step(bar("h", 700_000, 720_000, "launch", 9), bar("g", 1_100_000, 1_900_000, "replay", 9)))
    arrow = next(trace for trace in figure["data"] if trace["name"] == "launched")
    assert arrow["x"] == [-0.3, 0.1, None]
    assert figure["layout"]["xaxis"]["range"][0] == -0.3


def test_a_launch_long_before_does_not_squeeze_the_step() -> None:
    figure = step_timeline(step(bar("h", -9_000_000, -8_000_000, "launch", 9)))
    assert figure["layout"]["xaxis"]["range"] == [-1.2, 2.0]


def test_a_merged_bar_is_as_high_as_it_is_covered() -> None:
    full, half = (step_timeline(step(bar("g", 0, 9, "operations", None, fill)))["data"][0] for fill in (1.0, 0.5))
    assert half["width"][0] == full["width"][0] / 2
    assert half["y"][0] - half["width"][0] / 2 == full["y"][0] - full["width"][0] / 2


def test_the_wait_to_blame_and_the_drain_are_marked() -> None:
    names = [trace["name"] for trace in step_timeline(sample_report().detail.timelines[0])["data"]]
    assert {"wait to blame", "drain: the GPU ran dry", "idle: host late", "graph replay", "NVTX range"} <= set(names)


def test_two_steps_lie_below_each_other_aligned_at_their_start_and_keep_their_own_arrows() -> None:
    launch, replay = bar("h", 1_000_000, 1_020_000, "launch", 9), bar("g", 1_100_000, 1_900_000, "replay", 9)
    early = replace(step(launch, replay), start_ns=1_000_000)
    later = replace(
        step(*(replace(one, start_ns=one.start_ns + 500, end_ns=one.end_ns + 500) for one in (launch, replay))),
        start_ns=1_000_500,
        end_ns=4_000_500,
    )
    figure = step_chart([("base", early), ("head", later)])
    replays = next(trace for trace in figure["data"] if trace["name"] == "graph replay")
    assert replays["base"] == [0.1, 0.1]
    assert replays["y"][0] > replays["y"][1] + 2
    arrows = next(trace for trace in figure["data"] if trace["name"] == "launched")
    assert arrows["x"] == [0.0, 0.1, None] * 2
    assert arrows["y"][0] - arrows["y"][3] == replays["y"][0] - replays["y"][1]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["base: h", "base: g", "head: h", "head: g"]
    assert figure["layout"]["xaxis"]["range"] == [0, 3.0]
