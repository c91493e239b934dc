"""Results as the benchmarks of SGLang and vLLM write them: their keys, made-up values."""

from __future__ import annotations

from typing import Any


def sglang(tag: str | None = None, concurrency: int | None = 1, **changed: Any) -> dict[str, Any]:
    """One line of `sglang.bench_serving --output-file`, of a run with an accept length of 3."""
    times = {
        f"{statistic}_{name}_ms": value * factor
        for name, value in (("ttft", 200.0), ("tpot", 3.0), ("itl", 9.0), ("e2e_latency", 3300.0))
        for statistic, factor in (
            ("mean", 1.0),
            ("median", 1.0),
            ("std", 0.1),
            ("p90", 1.1),
            ("p95", 1.2),
            ("p99", 1.5),
        )
    }
    return {
        "tag": tag, "backend": "sglang", "dataset_name": "random", "request_rate": float("inf"),
        "max_concurrency": concurrency, "random_input_len": 1024, "random_output_len": 1024, "server_info": None,
        "duration": 33.0, "completed": 10, "total_input_tokens": 10240, "total_output_tokens": 10240,
        "request_throughput": 0.3, "input_throughput": 310.0, "output_throughput": 310.3, "total_throughput": 620.0,
        "concurrency": 0.99, "accept_length": 3.0, **times, **changed,
    }  # fmt: skip


def vllm(label: str | None = None, concurrency: int | None = 1, **changed: Any) -> dict[str, Any]:
    """What `vllm bench serve --save-result` writes, with the percentiles that it writes by default."""
    times = {
        f"{statistic}_{name}_ms": value * factor
        for name, value in (("ttft", 200.0), ("tpot", 9.0), ("itl", 9.0), ("e2el", 9300.0))
        for statistic, factor in (("mean", 1.0), ("median", 1.0), ("std", 0.1), ("p99", 1.5))
    }
    return {
        "date": "20260101-000000", "endpoint_type": "openai", "backend": "openai", "label": label, "model_id": "m",
        "num_prompts": 10, "request_rate": "inf", "max_concurrency": concurrency, "duration": 95.0, "completed": 10,
        "failed": 0, "total_input_tokens": 10240, "total_output_tokens": 10240, "request_throughput": 0.1,
        "output_throughput": 107.8, "total_token_throughput": 215.0, **times, **changed,
    }  # fmt: skip
