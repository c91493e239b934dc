from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.economics.bench import Bench, read_bench
from bubblefinder.economics.serving import Capture, served, traps
from tests.benches import sglang

if TYPE_CHECKING:
    from pathlib import Path


def bench(tmp_path: Path, **changed: Any) -> Bench:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(sglang(**changed)))
    return read_bench(path)[0]


def capture(step_ms: float | None, untraced_ms: float | None = None, *, drafts: bool = True) -> Capture:
    step, untraced = (None if ms is None else ms * 1e6 for ms in (step_ms, untraced_ms))
    return Capture(step_ns=step, untraced_ns=untraced, bubble_ns=None if step is None else 0.3 * step, drafts=drafts)


def notes(tmp_path: Path, held: Capture, **changed: Any) -> str:
    return " | ".join(served([bench(tmp_path, **changed)], held)[0].notes)


def test_a_step_that_fits_says_only_what_itl_is(tmp_path: Path) -> None:
    (one,) = served([bench(tmp_path)], capture(9.3, 9.1))
    assert one.step_ns == 9e6
    assert one.off == pytest.approx(9.0 / 9.1 - 1)
    assert one.bubble_share_of_tpot == pytest.approx(0.3 * 9.3 / 9.1)
    (trap,) = one.notes
    assert trap.startswith("its ITL of 9.00 ms is the step")


def test_a_step_that_doesn_t_fit(tmp_path: Path) -> None:
    assert "29.1 % longer. They are of different loads" in notes(tmp_path, capture(7.2, 6.97))


def test_a_benchmark_under_the_profiler(tmp_path: Path) -> None:
    said = notes(tmp_path, capture(9.0, 7.0))
    assert "It is the traced step: the benchmark ran while the profiler did" in said


def test_without_a_step_nothing_is_compared(tmp_path: Path) -> None:
    (one,) = served([bench(tmp_path)], capture(None))
    assert (one.captured_ns, one.off, one.bubble_share_of_tpot) == (None, None, None)


def test_traps(tmp_path: Path) -> None:
    assert "3 of 13 requests failed" in notes(tmp_path, capture(9.0), failed=3)
    assert "warm-up is inside" in notes(tmp_path, capture(9.0), ttfts=[2.0, 0.2, 0.2])
    assert "Candidates:" in notes(tmp_path, capture(3.0), accept_length=1.01)
    assert "states no accept length" in notes(tmp_path, capture(9.0), accept_length=None)
    assert not list(traps(bench(tmp_path, accept_length=None), drafts=False))


def test_one_request_at_a_time_is_what_a_capture_at_batch_1_shows(tmp_path: Path) -> None:
    runs = [bench(tmp_path, concurrency=16), bench(tmp_path, concurrency=1)]
    assert [one.bench.concurrency for one in served(runs, capture(9.0))] == [1]
