"""What a serving benchmark measured, as `sglang.bench_serving` and `vllm bench serve` write it down."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from bubblefinder.rules.suggest import FileError, validate

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Engine = Literal["sglang", "vllm"]
Temperature = Literal["warm", "cold"]

STATISTICS: Final = ("mean", "p50", "p95", "p99")
_HINT: Final = "give the file that `sglang.bench_serving --output-file` or `vllm bench serve --save-result` wrote"
_MS: Final = 1e6


def _number_or_none(value: object) -> object:
    """Take what isn't a number (a missing percentile is written as text by some) for unknown."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


_Maybe = Annotated[float | None, BeforeValidator(_number_or_none)]


class _Result(BaseModel):
    """The keys that both writers use alike; percentiles are read by name."""

    model_config = ConfigDict(extra="allow", frozen=True)

    completed: int
    duration: float = Field(gt=0)
    total_output_tokens: int
    output_throughput: float
    mean_ttft_ms: float
    mean_tpot_ms: float
    failed: int = 0
    num_prompts: int | None = None
    max_concurrency: _Maybe = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One benchmark run.

    Attributes:
        engine: whose benchmark wrote it.
        scenario: what kind of requests they were, from the run's tag (SGLang), label or metadata (vLLM); null unknown.
        temperature: warm or cold, from a tag such as ``coding/warm``; null where it isn't said.
        concurrency: most requests at a time; null unlimited or unknown.
        completed: requests that were answered.
        failed: requests that were not.
        duration_s: wall time of all of it.
        output_tokens: tokens in the answers.
        output_throughput: output tokens over the wall time, which holds first tokens, scheduling and the tail.
        times_ns: by quantity (ttft, tpot, itl, e2e) and statistic (mean, p50, p95, p99): null where not written.
        accept_length: tokens a verify pass commits, its own included, as both writers count; null without speculation.
        slowest_ttft: longest time to a first token over the median one; null where single requests aren't written.
    """

    engine: Engine
    scenario: str | None
    temperature: Temperature | None
    concurrency: int | None
    completed: int
    failed: int
    duration_s: float
    output_tokens: int
    output_throughput: float
    times_ns: dict[str, dict[str, float | None]]
    accept_length: float | None
    slowest_ttft: float | None

    @property
    def tpot_ns(self) -> float:
        """Mean time per output token."""
        return self.times_ns["tpot"]["mean"] or 0.0

    @property
    def step_ns(self) -> float:
        """Mean step: TPOT times accept length, or TPOT without speculation."""
        return self.tpot_ns * (self.accept_length or 1.0)


def read_bench(path: Path) -> tuple[Bench, ...]:
    """Return the runs in a file: one JSON object, a list of them, or one a line.

    Raises:
        FileError: the file can't be read, or a run lacks what a benchmark writes.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}", hint="check the path") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: it is no text in UTF-8", hint=_HINT) from error
    runs = [_bench(run, str(path)) for run in _documents(text, path)]
    if not runs:
        raise FileError(f"{path}: it holds no benchmark run", hint=_HINT)
    return tuple(runs)


def _documents(text: str, path: Path) -> Iterable[Any]:
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if whole is not None:
        return whole if isinstance(whole, list) else [whole]
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        raise FileError(f"{path}: neither JSON nor a JSON object a line: {error}", hint=_HINT) from error


def _bench(run: Any, where: str) -> Bench:  # noqa: ANN401 - whatever the file holds
    result = validate(_Result, run, where)
    extra: dict[str, Any] = result.model_extra or {}
    engine: Engine = "vllm" if any(key.endswith("_e2el_ms") or key == "endpoint_type" for key in extra) else "sglang"
    values = result.model_dump()
    scenario, temperature = _named(extra)
    end = "e2el" if engine == "vllm" else "e2e_latency"
    accept = _number_or_none(extra.get("spec_decode_acceptance_length", extra.get("accept_length")))
    return Bench(
        engine=engine,
        scenario=scenario,
        temperature=temperature,
        concurrency=round(result.max_concurrency) if result.max_concurrency else None,
        completed=result.completed,
        failed=max(result.failed, (result.num_prompts or 0) - result.completed, _errors(extra)),
        duration_s=result.duration,
        output_tokens=result.total_output_tokens,
        output_throughput=result.output_throughput,
        times_ns={
            "ttft": _times(values, "ttft"), "tpot": _times(values, "tpot"),
            "itl": _times(values, "itl"), "e2e": _times(values, end),
        },
        accept_length=accept if isinstance(accept, int | float) and accept >= 1 else None,
        slowest_ttft=_slowest(extra.get("ttfts")),
    )  # fmt: skip


def _named(extra: dict[str, Any]) -> tuple[str | None, Temperature | None]:
    """Return scenario and temperature: `scenario` and `temperature` in the metadata, else parts of tag or label."""
    tag = next((text for key in ("scenario", "tag", "label") if isinstance(text := extra.get(key), str) and text), "")
    name, _, state = tag.partition("/")
    told = extra.get("cache") if extra.get("cache") in ("warm", "cold") else state
    temperature: Temperature | None = "warm" if told == "warm" else "cold" if told == "cold" else None
    return name or None, temperature


def _times(values: dict[str, Any], quantity: str) -> dict[str, float | None]:
    keys = {"mean": "mean", "p50": "median", "p95": "p95", "p99": "p99"}
    found = {name: _number_or_none(values.get(f"{key}_{quantity}_ms")) for name, key in keys.items()}
    return {name: value * _MS if isinstance(value, int | float) else None for name, value in found.items()}


def _errors(extra: dict[str, Any]) -> int:
    errors = extra.get("errors")
    return sum(bool(error) for error in errors) if isinstance(errors, list) else 0


def _slowest(ttfts: object) -> float | None:
    """Return the longest time to a first token over the median one."""
    known = sorted(time for time in ttfts if isinstance(time, int | float)) if isinstance(ttfts, list) else []
    return known[-1] / known[len(known) // 2] if known and known[len(known) // 2] > 0 else None
