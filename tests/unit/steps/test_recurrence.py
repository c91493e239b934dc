from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.steps import recurrence
from bubblefinder.steps.recurrence import share_by_turns

PLACES = st.sets(st.integers(0, 60), min_size=2).map(sorted)


@given(PLACES, PLACES, st.sampled_from([0.5, 0.85, 0.9]), st.sampled_from([1, 4, 60]))
def test_the_share_of_turns_is_exact_from_the_least_on_and_no_less_than_it_is_below(
    one: list[int], other: list[int], least: float, some: int
) -> None:
    held = [sum(low <= place < high for place in other) for low, high in pairwise(one)]
    share = held.count(1) / len(held)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recurrence, "_SOME", some)
        found = share_by_turns(np.array(one), np.array(other), least)
    assert found == pytest.approx(share) if share >= least else share <= found < least
