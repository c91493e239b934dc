from __future__ import annotations

import pytest

from bubblefinder.replay.bound import Bound
from bubblefinder.replay.changes import HostSpeed, RemoveWaits
from bubblefinder.replay.doubt import Estimate
from bubblefinder.replay.predict import predict
from bubblefinder.replay.sentences import BOUNDS, sentence, tokens_per_second
from tests.modelled import model_drawn
from tests.unit.causes.test_collectives import RANKS
from tests.unit.replay.test_changes import ALL, HOST, READ

FED = """
    nvtx    | [step              ][step              ][step              ][step              ]
    api     | g...................g...................g...................g...................
    gpu0 s7 | ...ggggggggggggggggggg.ggggggggggggggggggg.ggggggggggggggggggg.ggggggggggggggggggg.
    g = graph 5
"""


@pytest.mark.parametrize(
    ("picture", "changes", "bound"),
    [
        (FED, [], Bound.GPU),
        (READ, [], Bound.WAIT),
        (READ, [ALL], Bound.GPU),
        (HOST, [], Bound.WAIT),
        (HOST, [ALL], Bound.HOST),
        (HOST, [HostSpeed(1e9)], Bound.WAIT),
    ],
)
def test_the_decisive_chain_tells_what_bounds_a_step(
    picture: str, changes: list[RemoveWaits | HostSpeed], bound: Bound
) -> None:
    (then,) = predict(model_drawn(picture), changes).values()
    assert then.bound is bound
    assert BOUNDS[bound] in sentence(Estimate(then))


def test_a_rank_that_waits_for_a_late_one_is_bound_by_that_ones_host() -> None:
    first, second = predict(model_drawn(RANKS), []).values()
    assert first.bound is Bound.HOST
    assert second.bound is Bound.HOST


def test_tokens_a_second_are_the_accept_length_over_the_step() -> None:
    assert tokens_per_second(5_000_000, 2.5) == pytest.approx(500)
