from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.steps.recurrence import places_of


@given(st.lists(st.sampled_from([0, 1, 65_535, 65_536, 65_537, 1 << 31, (1 << 40) + 1])))
def test_the_places_of_each_symbol_are_told_in_order_however_large_it_is(symbols: list[int]) -> None:
    found = [part.tolist() for part in places_of(np.array(symbols, np.int64)) if len(part)]
    wanted = [[n for n, one in enumerate(symbols) if one == symbol] for symbol in sorted(set(symbols))]
    assert found == wanted
