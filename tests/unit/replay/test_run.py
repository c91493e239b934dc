from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.replay.run import replay
from tests.captures import captures
from tests.modelled import model_of

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace


@given(captures())
def test_an_unchanged_run_comes_back_exactly(trace: Trace) -> None:
    model = model_of(trace)
    everything = np.ones(len(model.edges.lag), np.bool_)
    assert (replay(model, model.edges.lag, everything) == model.recorded).all()


@given(captures(), st.randoms(use_true_random=False))
def test_shorter_lags_and_fewer_dependencies_never_make_a_moment_later(trace: Trace, random: object) -> None:
    model = model_of(trace)
    draws = np.random.default_rng(random.getrandbits(32))  # type: ignore[attr-defined]
    first_of = np.searchsorted(model.edges.target, model.edges.target)
    keep = (draws.random(len(model.edges.lag)) < 0.8) | (first_of == np.arange(len(model.edges.lag)))
    lag = np.minimum(model.edges.lag, (model.edges.lag * draws.random(len(model.edges.lag))).astype(np.int64))
    assert (replay(model, lag, keep) <= model.recorded).all()


@given(captures(), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.9, 1.0]))
def test_each_node_comes_when_the_last_of_what_it_depends_on_lets_it(trace: Trace, seed: int, kept: float) -> None:
    model, draws = model_of(trace), np.random.default_rng(seed)
    lag, keep = draws.permutation(model.edges.lag), draws.random(len(model.edges.lag)) < kept
    came: list[int] = []
    waits = iter(zip(model.edges.source[keep], model.edges.target[keep], lag[keep], strict=True))
    wait = next(waits, None)
    for node, recorded in enumerate(model.recorded.tolist()):
        least = []
        while wait and wait[1] == node:
            least.append(came[wait[0]] + int(wait[2]))
            wait = next(waits, None)
        came.append(max(least, default=recorded))
    assert replay(model, lag, keep).tolist() == came


@given(captures())
def test_every_dependency_comes_before_what_depends_on_it(trace: Trace) -> None:
    edges = model_of(trace).edges
    assert (edges.source < edges.target).all()
    assert (np.diff(edges.target) >= 0).all()
