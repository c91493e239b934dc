"""The sentence every format opens with: how much of a step is idle, and which call is to blame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.report.overhead_sentences import may_be_the_profilers_ns
from bubblefinder.report.sentences import bound_words, place_words, plain
from bubblefinder.units import duration, plural, share

if TYPE_CHECKING:
    from bubblefinder.report.model import Finding, Report

_UNEVEN: Final = 1.2
_LATE: Final = 0.1
_OUTSIDE: Final = ("host_late", "launching", "queued", "unattributed")
IDLE_CLASSES: Final = ("intra_graph", "host_late", "launching", "queued", "unattributed")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reader should know after ten seconds.

    Attributes:
        headline: one sentence; it holds `number`.
        number: the part of the headline that matters most, empty if nothing could be measured.
        blame: one sentence about the first finding, or why there is none.
        gain: one sentence about what removing it gives; empty where unknown.
    """

    headline: str
    number: str
    blame: str
    gain: str


def verdict(report: Report) -> Verdict:
    """Return the verdict on a report; every format uses this one."""
    number, headline = _headline(report)
    return Verdict(headline=headline, number=number, blame=_blame(report), gain=_gain(report))


def idle_per_step_ns(report: Report) -> tuple[float | None, bool]:
    """Return the mean idle of a decode step, and whether it is only a lower bound."""
    means = {name: report.steps.per_step[name].mean for name in IDLE_CLASSES if name in report.steps.per_step}
    known = [mean for mean in means.values() if mean is not None]
    return (
        (sum(known), means.get("intra_graph") is None and report.steps.bubble_share.total is None)
        if known
        else (None, False)
    )


def leading_finding(report: Report) -> Finding | None:
    """Return the finding to fix first: findings come ranked, informative ones lead nothing."""
    return next((finding for finding in report.findings if finding.severity != "info"), None)


def _names_only(report: Report) -> bool:
    return any(note.code == "stack-walked" for note in report.quality)


def _headline(report: Report) -> tuple[str, str]:
    if report.trace.capture_mode == "unseen":
        return "", "This capture can't say how much the GPU idles: the work of its graph launches is not in the export."
    if _names_only(report):
        return "", "This capture names calls; its times are those of a program slowed by walking the stack at each."
    ratio = report.steps.bubble_share
    if not report.steps.count or (ratio.total is None and ratio.inter_graph is None):
        return _window_headline(report)
    idle, least = idle_per_step_ns(report)
    number = share(ratio.inter_graph if ratio.total is None else ratio.total)
    bound = "at least " if least else ""
    lengths = report.steps.per_step["duration"]
    uneven = lengths.mean is not None and lengths.p50 is not None and lengths.mean > _UNEVEN * lengths.p50
    usual = f", half of which take at most {duration(lengths.p50)}" if uneven else ""
    return number, (
        f"The GPU idles {bound}{number} of the decode time: {duration(idle)} of {duration(lengths.mean)} a step, "
        f"the mean of {plural(report.steps.count, 'step')}{usual}."
    )


def _window_headline(report: Report) -> tuple[str, str]:
    device = min(report.devices, key=lambda one: one.gpu, default=None)
    if device is None:
        return "", "The capture holds no GPU work."
    if device.idle_ns is None or not device.span_ns:
        return "", "No decode steps were found, and the idle time of this capture is not known."
    number = share(device.idle_ns / device.span_ns)
    window = duration(device.span_ns)
    return number, f"No decode steps were found. Over the window of {window}, GPU {device.gpu} was idle {number}."


def _blame(report: Report) -> str:
    if _names_only(report):
        named = plural(len(report.findings), "cause")
        return f"{named} named, without a price: take the prices from a capture without call chains."
    finding = leading_finding(report)
    if finding is None and report.expected:
        return f"Nothing to fix but what is expected: {plain(report.expected[0].finding.title)}."
    if finding is None:
        return _blameless(report)
    title, place = plain(finding.title), place_words(finding.site)
    told = (finding.site.nvtx or finding.site.frame or "") in finding.title
    where = " ".join(part for part in (plain(finding.site.api, 80), "" if told else place) if part)
    return f"First to fix: {title}" + (f", by {where}." if where else ".")


def _blameless(report: Report) -> str:
    if report.trace.capture_mode == "unseen":
        return "No cause can be named without the graph work."
    if any(note.code == "no-api-calls" for note in report.quality):
        return "No host call can be blamed: the capture has no CUDA API calls."
    if not report.steps.count:
        return "No host call can be blamed without decode steps: name one with --step-by."
    means = {name: stats.mean or 0 for name, stats in report.steps.per_step.items()}
    outside = {name: means.get(name, 0) for name in _OUTSIDE}
    if 2 * outside["unattributed"] > sum(outside.values()):
        return "No host call can be blamed: the capture lacks the launch calls of the work that ended most gaps."
    if outside["host_late"] > _LATE * means.get("duration", 0):
        return "No single host call is to blame: the host's own work between its calls keeps the GPU waiting."
    return "No host call is to blame for idle time."


def _gain(report: Report) -> str:
    finding = leading_finding(report)
    if finding is None or finding.recoverable_ns is None:
        return ""
    here = not finding.devices or any(
        (device.gpu, device.pid) == (report.steps.gpu, report.steps.pid) for device in finding.devices
    )
    where = "" if here else f" in process {finding.devices[0].pid} on GPU {finding.devices[0].gpu}"
    step = report.steps.per_step["duration"].p50 if here and "duration" in report.steps.per_step else None
    part = f", {share(finding.recoverable_ns / step)} of the median step" if step else ""
    after = bound_words(finding.bound_after)
    bound = f" The step is then bound by the {after}." if after else ""
    traced = may_be_the_profilers_ns(report.overhead) if here else None
    most = "at most" if traced else "about"
    doubt = f" But up to {duration(traced)} of the step may be the profiler's own time." if traced else ""
    return f"Removing it would give {most} {duration(finding.recoverable_ns)} a step{where}{part}.{bound}{doubt}"
