from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.pipeline import Analysis
from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.open import open_trace
from bubblefinder.web.events import window
from bubblefinder.web.tracks import KINDS, write_events

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PICTURE = """
nvtx     | [step                ]
api      | GG.C........GG.C......
gpu0 s7  | ..aa.b........aa.b....
gpu0 s14 | ......C...........C...
G = graph 5 a b
C = copy DtoH 8 pageable
"""


@pytest.fixture
def shown(tmp_path: Path) -> dict[str, Any]:
    timeline = build_timeline(draw(PICTURE))
    write_events(timeline, find_steps(timeline), tmp_path / "e")
    return window(tmp_path / "e", None, None)


def test_host_is_above_idle_and_idle_above_the_streams(shown: dict[str, Any]) -> None:
    assert [track["group"] for track in shown["tracks"]] == ["nvtx", "calls", "inside", "outside", "gpu", "gpu"]
    assert shown["tracks"][-1]["title"] == "GPU 0, stream 14"


def test_every_event_is_there_under_its_name(shown: dict[str, Any]) -> None:
    names = {
        track["title"].split(",")[0] + track["group"]: [shown["names"][bar[2]] for bar in track["bars"]]
        for track in shown["tracks"]
    }
    assert names["NVTXnvtx"] == ["step"]
    assert names["CUDA callscalls"] == ["cudaGraphLaunch", "cudaMemcpyAsync"] * 2
    assert [shown["names"][bar[2]] for bar in shown["tracks"][4]["bars"]] == ["a", "b"] * 2
    assert [shown["names"][bar[2]] for bar in shown["tracks"][5]["bars"]] == ["copy"] * 2


def test_idle_pieces_carry_their_class(shown: dict[str, Any]) -> None:
    inside, outside = ({KINDS[bar[3]] for bar in track["bars"]} for track in shown["tracks"][2:4])
    assert inside == {"intra_graph"}
    assert "host_late" in outside
    assert "intra_graph" not in outside


def test_times_are_those_of_the_capture(shown: dict[str, Any]) -> None:
    stream = shown["tracks"][4]["bars"]
    starts = [shown["start_ns"] + bar[0] for bar in stream]
    assert starts == [20_000, 50_000, 140_000, 170_000]


def test_a_call_and_what_it_launched_share_a_flow(shown: dict[str, Any]) -> None:
    calls, stream, copies = shown["tracks"][1]["bars"], shown["tracks"][4]["bars"], shown["tracks"][5]["bars"]
    graph, copy = calls[0][4], calls[1][4]
    assert [bar[4] for bar in stream[:2]] == [graph, graph]
    assert copies[0][4] == copy
    assert len({bar[4] for bar in calls}) == 4
    assert {bar[4] for bar in shown["tracks"][2]["bars"]} == {-1}


def test_windows_know_their_steps_by_the_number_that_the_report_gives_them(
    sample: Callable[[str], Path], tmp_path: Path
) -> None:
    analysis = Analysis(open_trace(sample("nextn_before.node")))
    write_events(analysis.timeline, analysis.steps, tmp_path / "e")
    shown = window(tmp_path / "e", None, None)
    numbers = [number for _, _, number in shown["steps"]]
    decode = [number for number in numbers if number]
    assert decode == list(range(1, len(decode) + 1))
    assert 0 in numbers
    start, length, number = shown["steps"][3]
    begun = shown["start_ns"] + start
    (first, *_) = window(tmp_path / "e", begun + 1, begun + length - 1)["steps"]
    assert first[2] == number


def test_of_many_gpus_the_first_has_all_its_tracks(tmp_path: Path) -> None:
    one = ["a..a..a..a..a..", ".aa.aa.aa.aa.aa"]
    more = [
        f"p{process} api | b.b.b.b.b.b.b..\np{process} gpu{process} s7 | .b.b.b.b.b.b.b." for process in range(2, 60)
    ]
    timeline = build_timeline(draw("\n".join([f"api | {one[0]}", f"gpu0 s7 | {one[1]}", *more])))
    write_events(timeline, find_steps(timeline), tmp_path / "e")
    shown = window(tmp_path / "e", None, None)
    assert shown["dropped"] > 100
    titles = [track["title"] for track in shown["tracks"]]
    assert [title for title in titles if title.startswith("GPU 0,")] == [
        "GPU 0, idle outside graph replays", "GPU 0, stream 7",
    ]  # fmt: skip
    assert titles[0].startswith("CUDA calls, thread")
