"""Every number that can be gated, tracked or compared: its id, unit, polarity, dimensions and meaning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from bubblefinder.report.model import sum_of
from bubblefinder.report.sentences import class_label
from bubblefinder.timeline.missing import missing_work
from bubblefinder.timeline.model import INTER_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import DeviceSteps, Report, StepRow
    from bubblefinder.timeline.shares import BubbleShare

Unit = Literal["ns", "ratio", "count"]
Better = Literal["lower", "higher", "neither"]
Where = tuple[tuple[str, str | int], ...]
Key = tuple[str, Where]
"""A metric's id and what of: what pairs a measure of one report with that of another."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A kind of number. `dimensions` names what a budget's `where` may select on; `label` is what people call it."""

    id: str
    label: str
    unit: Unit
    better: Better
    noise: NoiseSource
    meaning: str
    dimensions: tuple[str, ...] = ()


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
    def key(self) -> Key:
        """What pairs it with the same of another report."""
        return self.metric.id, self.where


_LEDGER: Final = {
    "duration": (NoiseSource.STEP, "length of a decode step"),
    "busy": (NoiseSource.GPU, "time of a step in which the GPU worked"),
    "intra_graph": (NoiseSource.GPU, "idle time inside graph replays"),
    "host_late": (NoiseSource.STEP, "idle time before the host had begun the next launch"),
    "launching": (NoiseSource.STEP, "idle time during the launch call itself"),
    "queued": (NoiseSource.STEP, "idle time after the launch call had returned"),
    "unattributed": (NoiseSource.STEP, "idle time whose launch call is not in the capture"),
    "unrecorded": (NoiseSource.STEP, "time in which a launch without a GPU record may have run"),
    "profiler": (NoiseSource.STEP, "idle time while the profiler itself was writing"),
    "inter_graph": (NoiseSource.STEP, "idle time outside graph replays"),
    "bubble": (NoiseSource.STEP, "idle time of a step, inside and outside graph replays"),
}
_UNMEASURED: Final = frozenset({"none", "assumed"})
"""Overheads that nobody measured: what is corrected by them is shown, and never judged."""
_INTER: Final = tuple(f"{name}_ns" for name in INTER_CLASSES)
_SUMS: Final = {"inter_graph": _INTER, "bubble": ("intra_graph_ns", *_INTER)}
_SHARES: Final = {
    "total": ("idle share", "inside and outside graph replays"),
    "inter_graph": ("idle share outside graphs", "outside graph replays"),
    "intra_graph": ("idle share inside graphs", "inside graph replays"),
}
_NAMES: Final = {"duration": "step", "bubble": "idle", "inter_graph": "outside graphs"}
_BARE: Final = " without the profiler"
_WITHOUT: Final = "without what the profiler added"


def _of_ledger() -> Iterator[Metric]:
    for name, (noise, meaning) in _LEDGER.items():
        for statistic, said in (("mean", "Mean"), ("p50", "Median"), ("p95", "95th percentile:")):
            source = NoiseSource.HOST if statistic == "p95" else noise
            yield _step(f"step.{name}.{statistic}", _called(name), source, f"{said} {meaning}.", ("rank",))
    for name, (label, where) in _SHARES.items():
        yield _share(f"bubble.share.{name}", label, f"{where}.")
    for name, (label, where) in _SHARES.items():
        yield _share(f"corrected.bubble.share.{name}", f"{label}{_BARE}", f"{where}, {_WITHOUT}.")
    for name in ("duration", "busy", "intra_graph", "host_late", "launching", "queued"):
        noise, meaning = _LEDGER[name]
        yield _step(f"corrected.step.{name}.p50", f"{_called(name)}{_BARE}", noise, f"Median {meaning}, {_WITHOUT}.")


def _called(name: str) -> str:
    return _NAMES.get(name, class_label(name))


def _step(name: str, label: str, noise: NoiseSource, meaning: str, of: tuple[str, ...] = ()) -> Metric:
    return Metric(id=name, label=label, unit="ns", better="lower", noise=noise, meaning=meaning, dimensions=of)


def _share(name: str, label: str, where: str) -> Metric:
    meaning = f"Idle share of the decode steps' time {where}"
    return Metric(id=name, label=label, unit="ratio", better="lower", noise=NoiseSource.SHARE, meaning=meaning)


_WRITTEN: Final = msgspec.toml.decode(
    (files("bubblefinder.compare") / "metrics.toml").read_bytes(), type=dict[str, list[Metric]]
)
METRICS: Final = {metric.id: metric for metric in (*_of_ledger(), *_WRITTEN["metric"])}
SERVING: Final = {metric.id: metric for metric in _WRITTEN["serving"]}
"""What serving is held to."""


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
    if missing_work(report.trace.capture_mode, report.quality):
        return tuple(replace(one, value=None, samples=()) for one in measures)
    return measures


def measurable(report: Report) -> bool:
    """Tell whether the report has decode steps whose work is in the capture."""
    return missing_work(report.trace.capture_mode, report.quality) is None and bool(ranks(report))


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
    return sum_of(getattr(row, part) for part in parts)


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
    yield Measure(METRICS["waits.per_step"], (), sum_of([*draining, *benign]) if told else None)
    yield Measure(METRICS["waits.draining.per_step"], (), sum_of(draining) if told else None)
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
