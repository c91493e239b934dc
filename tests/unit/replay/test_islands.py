"""Which processes wait for each other, and that their hosts' changes are told apart when replayed at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.generate import Shape, generate
from bubblefinder.pipeline import Analysis
from bubblefinder.replay.changes import ShortenHost
from bubblefinder.replay.islands import islands_of, replayed_at_once
from bubblefinder.replay.predict import steps_after
from bubblefinder.trace.open import open_trace
from tests.modelled import model_drawn
from tests.unit.causes.test_collectives import RANKS

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.timeline.rank import Rank


def test_ranks_that_meet_in_a_collective_are_one_island() -> None:
    islands = islands_of(model_drawn(RANKS))
    assert len(islands) == 2
    assert len(set(islands.values())) == 1


def test_hosts_that_nothing_ties_together_are_changed_in_one_replay(tmp_path: Path) -> None:
    generate(tmp_path / "made.sqlite", 3_000, Shape(nodes=40, eager=10, gpus=3))
    model = Analysis(open_trace(tmp_path / "made.sqlite")).model
    assert model is not None
    islands = islands_of(model)
    assert len(set(islands.values())) == 3
    process = model.calls["process"].to_numpy()
    own = {rank: np.flatnonzero(process == rank.process) for rank in model.steps}
    wanted = {
        rank: [
            ShortenHost(calls, np.full(len(calls), us * 1000), np.zeros(len(calls), np.int64))
            for us in (10, 300 + rank.gpu)
        ]
        for rank, calls in own.items()
    }
    replays = []

    def run(change: ShortenHost, _: list[Rank]) -> dict[Rank, int]:
        replays.append(change)
        return steps_after(model, [change])

    found = replayed_at_once(model, wanted, run)
    assert len(replays) == 2
    for rank, changes in wanted.items():
        assert found[rank] == [steps_after(model, [change])[rank] for change in changes]
        assert found[rank][1] < found[rank][0]
