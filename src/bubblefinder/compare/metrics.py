"""Every number that can be gated, tracked or compared: its id, unit, polarity, dimensions and meaning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from bubblefinder.timeline.model import INTER_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import DeviceSteps, Report, StepRow
    from bubblefinder.timeline.shares import BubbleShare

Unit = Literal["ns", "ratio", "count"]
Better = Literal["lower", "higher", "neither"]
_Number = TypeVar("_Number", int, float)
Where = tuple[tuple[str, str | int], ...]

SEVERITIES: Final = ("high", "medium", "low", "info")
P50: Final = 0.5
P95: Final = 0.95
_STATISTICS: Final[tuple[tuple[str, float | None], ...]] = (("mean", None), ("p50", P50), ("p95", P95))


class NoiseSource(Enum):
    """What makes a metric differ between two captures of one thing, hence how far it may wander.

    STEP wanders with the step (by its regime), GPU only with the GPU's own speed, HOST as far as a host does
    whatever the regime, QUEUE as far as a host runs ahead, SHARE is a ratio of steps, HOST_SHARE one of host calls,
    COUNT a number of things.
    """

    STEP = "step"
    GPU = "gpu"
    HOST = "host"
    QUEUE = "queue"
    SHARE = "share"
    HOST_SHARE = "host_share"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Metric:
    """A kind of number. `dimensions` names what a budget's `where` may select on."""

    id: str
    unit: Unit
    better: Better
    dimensions: tuple[str, ...]
    noise: NoiseSource
    meaning: str


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric's value in one report; null when the report can't tell.

    `samples` are the values of the single decode steps in their order and `quantile` the percentile
    of them that `value` is, null for their mean; without samples the value isn't taken over steps.
    """

    metric: Metric
    where: Where
    value: float | None
    samples: tuple[int, ...] = ()
    quantile: float | None = None

    @property
    def key(self) -> tuple[str, Where]:
        """What pairs a measure of one report with that of another."""
        return self.metric.id, self.where


_LEDGER: Final = {
    "duration": ("length of a decode step", NoiseSource.STEP),
    "busy": ("time of a step in which the GPU worked", NoiseSource.GPU),
    "intra_graph": ("idle time inside graph replays", NoiseSource.GPU),
    "host_late": ("idle time before the host had begun the next launch", NoiseSource.STEP),
    "launching": ("idle time during the launch call itself", NoiseSource.STEP),
    "queued": ("idle time after the launch call had returned", NoiseSource.STEP),
    "unattributed": ("idle time whose launch call is not in the capture", NoiseSource.STEP),
    "unrecorded": ("time in which a launch without a GPU record may have run", NoiseSource.STEP),
    "profiler": ("idle time while the profiler itself was writing", NoiseSource.STEP),
    "inter_graph": ("idle time outside graph replays", NoiseSource.STEP),
    "bubble": ("idle time of a step, inside and outside graph replays", NoiseSource.STEP),
}
_UNMEASURED: Final = frozenset({"none", "assumed"})
"""Overheads that nobody measured: what is corrected by them is shown, and never judged."""
_INTER: Final = tuple(f"{name}_ns" for name in INTER_CLASSES)
_SUMS: Final = {"inter_graph": _INTER, "bubble": ("intra_graph_ns", *_INTER)}
_SHARES: Final = {
    "total": "inside and outside graph replays",
    "inter_graph": "outside graph replays",
    "intra_graph": "inside graph replays",
}


def _time(name: str, noise: NoiseSource, meaning: str, *dimensions: str, better: Better = "lower") -> Metric:
    return Metric(name, "ns", better, dimensions, noise, meaning)


def _share(
    name: str, meaning: str, *dimensions: str, better: Better = "lower", noise: NoiseSource = NoiseSource.SHARE
) -> Metric:
    return Metric(name, "ratio", better, dimensions, noise, meaning)


def _count(name: str, meaning: str, *dimensions: str, better: Better = "lower") -> Metric:
    return Metric(name, "count", better, dimensions, NoiseSource.COUNT, meaning)


def _catalogue() -> Iterator[Metric]:
    for name, (meaning, noise) in _LEDGER.items():
        yield _time(f"step.{name}.mean", noise, f"Mean {meaning}.", "rank")
        yield _time(f"step.{name}.p50", noise, f"Median {meaning}.", "rank")
        yield _time(f"step.{name}.p95", NoiseSource.HOST, f"95th percentile: {meaning}.", "rank")
    for name, where in _SHARES.items():
        yield _share(f"bubble.share.{name}", f"Idle share of the decode steps' time {where}.")
    for name, where in _SHARES.items():
        meaning = f"Idle share of the decode steps' time {where}, without what the profiler added."
        yield _share(f"corrected.bubble.share.{name}", meaning)
    for name in ("duration", "busy", "intra_graph", "host_late", "launching", "queued"):
        meaning, noise = _LEDGER[name]
        yield _time(f"corrected.step.{name}.p50", noise, f"Median {meaning}, without what the profiler added.")
    yield _time("role.duration.p50", NoiseSource.GPU, "Median length of one part of the step.", "role")
    yield _time("role.intra_graph.p50", NoiseSource.GPU, "Median idle time inside the replays of one part.", "role")
    yield _count("role.nodes", "Nodes of a replay of one part.", "role", better="neither")
    yield _count("role.replays", "Replays of one part in a step.", "role", better="neither")
    yield _count("waits.per_step", "Blocking reads and synchronisations in a step.")
    yield _count("waits.draining.per_step", "Those under which the GPU ran dry.")
    yield _count("launches.per_step", "Launch calls in a step.")
    yield _time(
        "launch.lead.p50", NoiseSource.QUEUE, "Median time that launched work waited in the queue.", better="higher"
    )
    meaning = "Share of launch calls whose work was queued before the GPU was free."
    yield _share("launch.run_ahead.share", meaning, "rank", better="higher", noise=NoiseSource.HOST_SHARE)
    yield _share("launch.coverage", "Share of launch calls with a GPU record.", "rank", better="higher")
    yield _share("pdl.overlap.share", "Share of kernels that began before the one before had ended.", better="higher")
    yield _count("findings.count", "Findings of one severity.", "severity")
    yield _share("floor.share", "Time the bytes of a step need over the mean step.", better="higher")
    yield _count("speculation.accept_length", "Tokens a verify pass commits, by the benchmark.", better="higher")
    yield _time("speculation.tpot.mean", NoiseSource.HOST, "Mean time per output token, by the benchmark.")
    yield _time("speculation.step.mean", NoiseSource.HOST, "Mean step by the benchmark: TPOT times accept length.")
    yield _share("overhead.inflation", "Traced step over the step without the profiler.")


METRICS: Final = {metric.id: metric for metric in _catalogue()}


def measure(report: Report) -> tuple[Measure, ...]:
    """Return every measure that applies to the report, in the order of the catalogue's groups.

    A capture without the work of its graphs knows none of them.
    """
    measures = (
        *_of_steps(report),
        *_of_bubble(report),
        *_of_roles(report),
        *_of_launches(report),
        *_of_findings(report),
        *_of_economics(report),
    )
    if report.trace.capture_mode == "unseen":
        return tuple(replace(one, value=None, samples=()) for one in measures)
    return measures


def measurable(report: Report) -> bool:
    """Tell whether the report has decode steps whose work is in the capture."""
    return report.trace.capture_mode != "unseen" and bool(ranks(report))


def ranks(report: Report) -> list[DeviceSteps]:
    """Return the devices with decode steps in the order of their ranks: by GPU, then by process."""
    return sorted((d for d in report.steps.by_device if d.count), key=lambda d: (d.gpu, d.pid))


def decode_rows(report: Report, rank: DeviceSteps) -> list[StepRow]:
    """Return the decode steps of one rank in order of time."""
    mine = [r for r in report.steps.rows if (r.gpu, r.pid) == (rank.gpu, rank.pid) and r.excluded is None]
    return sorted(mine, key=lambda row: row.start_ns)


def row_value(row: StepRow, name: str) -> int | None:
    """Return a ledger class of one step; `inter_graph` and `bubble` are sums, null if a part is."""
    parts = _SUMS.get(name, (f"{name}_ns",))
    return _sum(getattr(row, part) for part in parts)


def waits(report: Report) -> list[Finding]:
    """Return the findings about blocking calls that drained the GPU, expected ones included."""
    found = [*report.findings, *(e.finding for e in report.expected)]
    return [f for f in found if f.site.api is not None and f.host_blocked_ns.p50 is not None]


def _of_steps(report: Report) -> Iterator[Measure]:
    eager = report.trace.capture_mode == "none"
    for number, rank in enumerate(ranks(report)):
        rows = decode_rows(report, rank)
        for name in _LEDGER:
            whole = "inter_graph" if eager and name == "bubble" else name
            values = [row_value(row, whole) for row in rows]
            samples = tuple(v for v in values if v is not None) if None not in values else ()
            for label, quantile in _STATISTICS:
                stats = rank.per_step.get(whole)
                value = getattr(stats, label) if stats else _statistic(samples, quantile)
                yield Measure(METRICS[f"step.{name}.{label}"], (("rank", number),), value, samples, quantile)


def _of_bubble(report: Report) -> Iterator[Measure]:
    yield from _shares("bubble.share", report.steps.bubble_share)
    overhead = report.overhead
    if overhead.method in _UNMEASURED:
        return
    if overhead.corrected_bubble_share is not None:
        yield from _shares("corrected.bubble.share", overhead.corrected_bubble_share)
    for name, value in sorted(overhead.corrected.items()):
        if metric := METRICS.get(f"corrected.step.{name}.p50"):
            yield Measure(metric, (), value)
    yield Measure(METRICS["overhead.inflation"], (), overhead.inflation)


def _shares(prefix: str, shares: BubbleShare) -> Iterator[Measure]:
    for name in _SHARES:
        yield Measure(METRICS[f"{prefix}.{name}"], (), getattr(shares, name))


def _of_roles(report: Report) -> Iterator[Measure]:
    for role in report.steps.roles:
        where: Where = (("role", role.role),)
        yield Measure(METRICS["role.duration.p50"], where, role.p50_ns)
        yield Measure(METRICS["role.intra_graph.p50"], where, role.intra_graph_p50_ns)
        yield Measure(METRICS["role.nodes"], where, role.nodes)
        yield Measure(METRICS["role.replays"], where, role.replays_per_step)


def _of_launches(report: Report) -> Iterator[Measure]:
    detail = report.detail
    mine = (report.steps.gpu, report.steps.pid)
    leads = tuple(row.lead_ns for row in detail.leads if (row.gpu, row.pid) == mine)
    yield Measure(METRICS["launches.per_step"], (), detail.launches_per_step)
    yield Measure(METRICS["launch.lead.p50"], (), _statistic(leads, P50), leads, P50)
    yield Measure(METRICS["pdl.overlap.share"], (), detail.pdl_overlap_share)
    devices = {device.gpu: device for device in report.devices}
    for number, rank in enumerate(ranks(report)):
        device = devices[rank.gpu]
        seen = device.launches.seen
        yield Measure(METRICS["launch.run_ahead.share"], (("rank", number),), device.run_ahead_share)
        coverage = device.launches.recorded / seen if seen else None
        yield Measure(METRICS["launch.coverage"], (("rank", number),), coverage)


def _of_findings(report: Report) -> Iterator[Measure]:
    told = report.steps.count > 0
    draining = [f.per_step_count for f in waits(report)]
    benign = [b.per_step_count for b in report.benign]
    yield Measure(METRICS["waits.per_step"], (), _sum([*draining, *benign]) if told else None)
    yield Measure(METRICS["waits.draining.per_step"], (), _sum(draining) if told else None)
    for severity in SEVERITIES:
        number = sum(f.severity == severity for f in report.findings)
        yield Measure(METRICS["findings.count"], (("severity", severity),), number if told or number else None)


def _of_economics(report: Report) -> Iterator[Measure]:
    economics = report.economics
    if economics is None:
        return
    if economics.floor:
        yield Measure(METRICS["floor.share"], (), economics.floor.achieved_share)
    for run in economics.served[:1]:
        yield Measure(METRICS["speculation.accept_length"], (), run.accept_length)
        yield Measure(METRICS["speculation.tpot.mean"], (), run.tpot_ns)
        yield Measure(METRICS["speculation.step.mean"], (), run.step_ns)


def _statistic(values: tuple[int, ...], quantile: float | None) -> float | None:
    """Return a percentile of the values, or their mean; null of nothing."""
    import numpy as np

    if not values:
        return None
    return float(np.mean(values) if quantile is None else np.quantile(values, quantile))


def _sum(values: Iterable[_Number | None]) -> _Number | int | None:
    known: list[_Number] = []
    for value in values:
        if value is None:
            return None
        known.append(value)
    return sum(known)
