from __future__ import annotations

import pytest

from bubblefinder.parallel import each


def test_each_keeps_the_order_and_raises_what_was_raised() -> None:
    assert each(lambda number: number * number, range(9)) == [number * number for number in range(9)]
    assert each(str, []) == []
    with pytest.raises(ZeroDivisionError):
        each(lambda number: 1 // number, [1, 0, 2])
