from __future__ import annotations

import pytest

from tests.loops import VERIFY, Loop
from tests.unit.steps.found import steps_of


@pytest.mark.parametrize(
    ("text", "requests"),
    [
        ("execute_context_0(0)_generation_4(4)", 4),
        ("[Executor] _forward_step 17: 0 ctx reqs, 3 gen reqs", 3),
        ("decode_step", None),
    ],
)
def test_a_range_says_how_many_requests_a_step_serves(text: str, requests: int | None) -> None:
    loop = Loop()
    for _ in range(12):
        loop.step([VERIFY], mark=text)
    assert steps_of(loop.sketch.trace()).windows["requests"].to_list() == [requests] * 12
