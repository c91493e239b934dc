"""The drawn steps: which they are, and that nothing in them is invented."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from bubblefinder.report.detail.timelines import step_timelines
from bubblefinder.timeline.model import LEDGER_CLASSES
from tests.unit.report.detail.analysed import loop

if TYPE_CHECKING:
    from bubblefinder.report.charts import StepTimeline


def drawn(*, node_mode: bool = True) -> list[StepTimeline]:
    one = loop(node_mode=node_mode)
    return step_timelines(one, one.decode, one.rank)


def test_the_median_and_the_longest_step_are_drawn() -> None:
    one = loop()
    median, worst = drawn()
    lengths = one.decode["end_ns"] - one.decode["start_ns"]
    assert worst.end_ns - worst.start_ns == lengths.max()
    middle = lengths.median()
    assert isinstance(middle, float)
    assert abs(median.end_ns - median.start_ns - middle) == (lengths - middle).abs().min()


@pytest.mark.parametrize("node_mode", [True, False])
def test_busy_and_idle_of_the_step_tile_it(node_mode: bool) -> None:
    one = loop(node_mode=node_mode)
    step = drawn(node_mode=node_mode)[0]
    idle = sum((bar.end_ns - bar.start_ns) * bar.fill for bar in step.bars if bar.kind in LEDGER_CLASSES[1:])
    starts = one.timeline.busy["start_ns"]
    mine = one.timeline.busy.filter((starts >= step.start_ns) & (starts < step.end_ns))
    busy = int((mine["end_ns"] - mine["start_ns"]).sum())
    assert idle + busy == pytest.approx(step.end_ns - step.start_ns, rel=1e-3)


def test_bars_of_the_gpu_lie_inside_the_step_and_gaps_do_not_overlap() -> None:
    step = drawn()[0]
    gpu = [bar for bar in step.bars if bar.track.startswith("GPU")]
    assert all(step.start_ns <= bar.start_ns <= bar.end_ns <= step.end_ns for bar in gpu)
    gaps = sorted((bar.start_ns, bar.end_ns) for bar in gpu if bar.track.endswith("idle") and bar.kind != "drain")
    assert all(end <= start for (_, end), (start, _) in pairwise(gaps))


def test_the_blocking_read_is_blamed_and_its_drain_marked() -> None:
    step = drawn()[0]
    (wait,) = [bar for bar in step.bars if bar.kind == "blamed_wait"]
    assert wait.name == "cudaMemcpyAsync"
    (drain,) = [bar for bar in step.bars if bar.kind == "drain"]
    assert drain.name == "ran dry under cudaMemcpyAsync"
    assert drain.start_ns == drain.end_ns
    assert any(bar.start_ns == drain.start_ns for bar in step.bars if bar.kind in LEDGER_CLASSES[1:])


def test_every_replay_is_linked_to_its_launch() -> None:
    step = drawn()[0]
    replays = {bar.link: bar for bar in step.bars if bar.kind == "replay"}
    launches = {bar.link: bar for bar in step.bars if bar.kind == "launch" and bar.link is not None}
    assert [bar.name for bar in replays.values()] == ["draft", "verify", "draft-extend"]
    assert set(replays) == set(launches)
    assert all(launches[link].start_ns < replay.start_ns for link, replay in replays.items() if link)


def test_the_host_stands_above_the_gpu_and_ranges_above_calls() -> None:
    tracks = list(dict.fromkeys(bar.track for bar in drawn()[0].bars))
    places = [next(at for at, track in enumerate(tracks) if word in track) for word in ("NVTX", "CUDA calls", "GPU 0")]
    assert places == sorted(places)
