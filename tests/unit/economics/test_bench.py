from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.economics.bench import read_bench
from bubblefinder.errors import UsageError
from tests.benches import sglang, vllm

if TYPE_CHECKING:
    from pathlib import Path


def saved(tmp_path: Path, *runs: dict[str, Any], lines: bool = True) -> Path:
    path = tmp_path / "bench.jsonl"
    path.write_text("\n".join(map(json.dumps, runs)) if lines else json.dumps(list(runs)))
    return path


def test_sglang_appends_a_line_a_run(tmp_path: Path) -> None:
    first, second = read_bench(saved(tmp_path, sglang("coding/warm"), sglang("coding/cold", concurrency=4)))
    assert (first.engine, first.scenario, first.temperature, first.concurrency) == ("sglang", "coding", "warm", 1)
    assert (second.temperature, second.concurrency) == ("cold", 4)
    assert first.accept_length == 3.0
    assert first.tpot_ns == 3e6
    assert first.step_ns == 9e6
    assert first.times_ns["e2e"]["p95"] == pytest.approx(3.96e9)
    assert first.output_throughput == 310.3


def test_vllm_writes_one_object_with_its_own_names(tmp_path: Path) -> None:
    (run,) = read_bench(saved(tmp_path, vllm("chat", spec_decode_acceptance_length=2.5)))
    assert (run.engine, run.scenario, run.temperature, run.accept_length) == ("vllm", "chat", None, 2.5)
    assert run.times_ns["e2e"]["p99"] == pytest.approx(13.95e9)
    assert run.times_ns["tpot"]["p95"] is None


def test_a_list_of_runs_and_metadata(tmp_path: Path) -> None:
    runs = read_bench(saved(tmp_path, vllm(scenario="coding", cache="cold"), vllm(), lines=False))
    assert [(run.scenario, run.temperature) for run in runs] == [("coding", "cold"), (None, None)]


def test_without_speculation_a_token_is_a_step(tmp_path: Path) -> None:
    (run,) = read_bench(saved(tmp_path, sglang(accept_length=None)))
    assert run.accept_length is None
    assert run.step_ns == run.tpot_ns


def test_requests_that_failed_are_counted_however_they_are_told(tmp_path: Path) -> None:
    runs = read_bench(saved(tmp_path, vllm(failed=2), vllm(completed=7), sglang(errors=["", "timeout", ""])))
    assert [run.failed for run in runs] == [2, 3, 1]


def test_the_slowest_first_token(tmp_path: Path) -> None:
    (run,) = read_bench(saved(tmp_path, sglang(ttfts=[3.0, 0.2, 0.2, 0.2])))
    assert run.slowest_ttft == pytest.approx(15)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "holds no benchmark run"),
        ("hello", "neither JSON nor"),
        ("[1]", "bench.jsonl"),
        ('{"completed": 1}', "duration: is missing"),
        (json.dumps(sglang(mean_tpot_ms="fast")), "mean_tpot_ms"),
    ],
)
def test_what_is_no_benchmark_says_so(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "bench.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError, match=reason):
        read_bench(path)


def test_a_file_that_isn_t_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_bench(tmp_path / "absent")
