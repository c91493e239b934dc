from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.fleet.judge import drifts, outliers, runs, stragglers, worst
from bubblefinder.fleet.model import Fleet, Row

S = 1_000_000_000


def row(number: int = 0, gpu: int = 0, **changed: Any) -> Row:
    known: dict[str, Any] = {
        "capture": f"{number}.sqlite", "path": f"/runs/{number}.sqlite", "gpu": gpu, "pid": 1, "gpu_name": "GPU",
        "mode": "node", "steps": 10, "confidence": "high", "step_ns": 7e6, "step_p95_ns": 7.1e6, "busy_ns": 6e6,
        "bubble_ns": 1e6, "inter_ns": 0.2e6, "started_ns": number * 60 * S,
    }  # fmt: skip
    return Row(**known | changed)


def test_the_rank_that_idles_most_comes_first_whatever_was_measured() -> None:
    rows = (row(0), row(1, bubble_ns=None, inter_ns=3e6), row(2, bubble_ns=2e6), row(3, bubble_ns=None, inter_ns=None))
    assert [one.capture for one in worst(Fleet(rows))] == ["1.sqlite", "2.sqlite", "0.sqlite"]


def test_captures_that_began_within_seconds_are_of_one_run() -> None:
    rows = (row(0, started_ns=0), row(1, started_ns=3 * S), row(2, started_ns=300 * S), row(3, started_ns=None))
    assert [[one.capture[0] for one in run] for run in runs(Fleet(rows))] == [["0", "1"], ["2"], ["3"]]


def test_the_rank_that_others_wait_for_straggles() -> None:
    late = Fleet((row(0, gpu=0), row(0, gpu=1, inter_ns=1.2e6), row(0, gpu=2)))
    (one,) = stragglers(late)
    assert (one.row.gpu, one.late_ns) == (1, 1e6)
    assert stragglers(Fleet((row(0), row(1, inter_ns=5e6)))) == []


def test_a_capture_unlike_those_alike_is_an_outlier() -> None:
    rows = [row(n, step_ns=7e6 + n * 1e3) for n in range(6)]
    odd = row(6, step_ns=9e6)
    elsewhere = row(7, step_ns=30e6, gpu_name="another GPU")
    assert [one.row for one in outliers(Fleet((*rows, odd, elsewhere)))] == [odd]


@given(st.lists(st.floats(6.95e6, 7.05e6), min_size=1, max_size=12))
def test_captures_within_two_percent_are_never_outliers(steps: list[float]) -> None:
    assert outliers(Fleet(tuple(row(n, step_ns=ns) for n, ns in enumerate(steps)))) == []


def test_a_step_that_grows_with_time_drifts() -> None:
    (grown,) = drifts(Fleet(tuple(row(n, step_ns=7e6 + n * 1e5) for n in range(9))))
    assert grown.real
    (steady,) = drifts(Fleet(tuple(row(n, step_ns=7e6 + n % 2 * 1e5) for n in range(9))))
    assert not steady.real
    assert drifts(Fleet(tuple(row(n) for n in range(4)))) == []
