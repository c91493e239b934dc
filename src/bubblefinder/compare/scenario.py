"""What serving was measured to do, by the scenarios of an acceptance contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubblefinder.compare.metrics import SERVING, Metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.compare.budget import Scenario
    from bubblefinder.economics.acceptance import Acceptance, Result
    from bubblefinder.economics.bench import Bench


@dataclass(frozen=True, slots=True)
class Results:
    """What was measured: benchmark runs, and what was seen besides."""

    benches: tuple[Bench, ...] = ()
    acceptance: Acceptance | None = None


@dataclass(frozen=True, slots=True)
class ServingMeasure:
    """A metric's value in one scenario, concurrency and state of the caches; null where nothing says it."""

    metric: Metric
    where: dict[str, str | int]
    value: float | None


def measures(scenario: Scenario, metric: str, results: Results) -> Iterator[ServingMeasure]:
    """Yield a metric's value for each concurrency, warm and cold runs apart; null where there is no result."""
    for concurrency in scenario.concurrency:
        benches = [b for b in results.benches if b.scenario == scenario.name and b.concurrency == concurrency]
        told = results.acceptance.result if results.acceptance else ()
        seen = [r for r in told if (r.scenario, r.concurrency) == (scenario.name, concurrency)]
        states = {*(b.temperature for b in benches), *(r.cache for r in seen)}
        wanted = [scenario.cache] if scenario.cache else sorted(states, key=str) or [None]
        for state in wanted:
            where: dict[str, str | int] = {"scenario": scenario.name, "concurrency": concurrency}
            where |= {"cache": state} if state else {}
            mine = [b for b in benches if b.temperature == state]
            values = [_of_bench(metric, b) for b in mine] + [_of_result(metric, r) for r in seen if r.cache == state]
            known = [value for value in values if value is not None]
            yield ServingMeasure(SERVING[metric], where, _worst(known, SERVING[metric]))


def _worst(values: Sequence[float], metric: Metric) -> float | None:
    """Return the worst of several runs: a limit holds for all of them."""
    if not values:
        return None
    return max(values) if metric.better == "lower" else min(values)


def _of_bench(metric: str, bench: Bench) -> float | None:
    name, _, statistic = metric.removeprefix("serving.").partition(".")
    if name in bench.times_ns:
        return bench.times_ns[name].get(statistic)
    return {"output_throughput": bench.output_throughput, "accept_length": bench.accept_length}.get(name)


def _of_result(metric: str, result: Result) -> float | None:
    name = metric.removeprefix("serving.")
    if name == "accept_length" and result.accept_length is not None:
        return result.accept_length + (0 if result.accept_counts_own else 1)
    if name in ("fallback_ratio", "task_success", "invalid_tool_calls", "greedy_match", "rollback_ready"):
        value = getattr(result, name)
        return None if value is None else float(value)
    return None
