"""The sentence every format opens with: how much of a step is idle, and which call is to blame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.replay.sentences import doubt_words
from bubblefinder.report.model import DeviceSteps, Report, Stats, Verdict, mean_of
from bubblefinder.report.prediction_sentences import alone_words, between, between_words, in_words, is_handed_on
from bubblefinder.report.row_of_waits import BEYOND, row_words, together_words
from bubblefinder.report.sentences import (
    CLASS_LABELS,
    bound_words,
    counted_in,
    few_words,
    place_words,
    plain,
    rank_words,
)
from bubblefinder.rules.shipped import OTHER
from bubblefinder.timeline.missing import missing_work
from bubblefinder.timeline.model import INTER_CLASSES
from bubblefinder.units import duration, kernel_name, plural, share

if TYPE_CHECKING:
    from bubblefinder.report.found import Finding, WaitChainReport

_UNEVEN: Final = 1.2
_LATE: Final = 0.1
FED: Final = 0.02
"""A host that leaves less of the decode time idle outside graphs keeps the GPU fed."""
_UNEXPLAINED: Final = 0.1
"""Less of the idle time that no finding explains is not told."""
_NAMED: Final = 3
IDLE_CLASSES: Final = ("intra_graph", *INTER_CLASSES)


def verdict(report: Report) -> Verdict:
    """Return the verdict on a report; every format uses this one."""
    number, headline = _headline(report)
    finding, chain = leading_finding(report), _row(report)
    blame, gains = _blame(report), [_gain(report), _joint(report)]
    if chain and row_leads(report):
        blame, gains = f"First to fix: {row_words(chain)}.", [_without_row(chain, report.overhead.untold_ns)]
    elif chain:
        blame = f"{blame} Beside it, {row_words(chain)}."
        gains = [_gain(report, "the first"), _without_row(chain, whose="The waits together")]
    elif finding is not None and is_handed_on(finding):
        gains = [_joint(report), _gain(report)]
    gain = " ".join(part for part in gains if part)
    return Verdict(headline=headline, number=number, blame=blame, gain=gain, rest="" if chain else _rest(report))


def idle_per_step_ns(report: Report) -> tuple[float | None, bool]:
    """Return the mean idle of a decode step, and whether it is only a lower bound."""
    means = {name: mean_of(report.steps.per_step, name) for name in IDLE_CLASSES}
    known = [mean for mean in means.values() if mean is not None]
    unsure = means["intra_graph"] is None and report.steps.bubble_share.total is None
    return (sum(known), unsure) if known else (None, False)


def leading_finding(report: Report) -> Finding | None:
    """Return the finding to fix first: findings come ranked, informative ones lead nothing."""
    return next((finding for finding in report.findings if finding.severity != "info"), None)


def row_leads(report: Report) -> WaitChainReport | None:
    """Return the waits in a row that the leading finding is one of, where a report tells them before it."""
    finding = leading_finding(report)
    return _row(report) if finding is not None and finding.in_turn_range_ns is not None else None


def names_only(report: Report) -> bool:
    """Return whether a capture names its calls alone: walking the stack at each made its times another program's."""
    return any(note.code == "stack-walked" for note in report.quality)


def _headline(report: Report) -> tuple[str, str]:
    if missing := missing_work(report.trace.capture_mode, report.quality):
        return "", f"This capture can't say how much the GPU idles: {missing.why}."
    if names_only(report):
        return "", "This capture names calls; its times are those of a program slowed by walking the stack at each."
    ratio = report.steps.bubble_share
    if not report.steps.count or (ratio.total is None and ratio.inter_graph is None):
        return _window_headline(report)
    idle, least = idle_per_step_ns(report)
    number = share(ratio.inter_graph if ratio.total is None else ratio.total)
    bound = "at least " if least else ""
    lengths = report.steps.per_step["duration"]
    usual = f", half of which take at most {duration(lengths.p50)}" if _is_uneven(lengths) else ""
    many = f"a step, the mean of {plural(report.steps.count, 'step')}" if report.steps.count > 1 else "in the only step"
    return number, (
        f"The GPU idles {bound}{number} of the decode time: {duration(idle)} of {duration(lengths.mean)} {many}{usual}."
        f"{_unknown(report)}"
    )


def _is_uneven(lengths: Stats) -> bool:
    return lengths.mean is not None and lengths.p50 is not None and lengths.mean > _UNEVEN * lengths.p50


def _unknown(report: Report) -> str:
    """Return how much of a step is neither busy nor idle for all that is on record, if that is much."""
    unrecorded, whole = (mean_of(report.steps.per_step, name) for name in ("unrecorded", "duration"))
    if not unrecorded or not whole or unrecorded < FED * whole:
        return ""
    return f" In another {duration(unrecorded)} a step the GPU may have worked: that part left no record."


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
    if names_only(report):
        named = plural(len(report.findings), "cause")
        return f"{named} named, without a price: take the prices from a capture without call chains."
    finding = leading_finding(report)
    if is_fed(report):
        return _busy(report, finding)
    if finding is None and report.expected:
        return f"Nothing to fix but what is expected: {plain(report.expected[0].finding.title)}."
    if finding is None:
        return _blameless(report)
    return f"First to fix: {plain(finding.title)}{_where(finding)}{_elsewhere(finding, report)}."


def _elsewhere(finding: Finding, report: Report) -> str:
    """Return the rank of a finding that isn't about the one whose step is told, where the title doesn't name it."""
    named = any(f"GPU {one.gpu}" in finding.title for one in finding.devices)
    return "" if is_here(finding, report) or named else f", on {rank_words(finding.devices)}"


def _where(finding: Finding) -> str:
    """Return the call and the place in the program, as far as the title doesn't name them."""
    site = finding.site
    call = f"by {plain(site.api, 80)}" if site.api and site.api not in finding.title else ""
    place = "" if (site.nvtx or site.frame or "") in finding.title else place_words(site)
    where = " ".join(part for part in (call, place) if part)
    return f", {where}" if where else ""


def _blameless(report: Report) -> str:
    if missing := missing_work(report.trace.capture_mode, report.quality):
        return f"No cause can be named: {missing.hint}."
    if any(note.code == "no-api-calls" for note in report.quality):
        return "No host call can be blamed: the capture has no CUDA API calls."
    if not report.steps.count:
        return "No host call can be blamed without decode steps: name one with --step-by."
    outside = {name: mean_of(report.steps.per_step, name) or 0 for name in INTER_CLASSES}
    if 2 * outside["unattributed"] > sum(outside.values()):
        return "No host call can be blamed: the capture lacks the launch calls of the work that ended most gaps."
    if outside["host_late"] > _LATE * (mean_of(report.steps.per_step, "duration") or 0):
        overhead = report.overhead
        added = (overhead.traced_step_ns or 0) - overhead.range_ns[0] if overhead.range_ns else 0
        doubt = f" Up to {duration(added)} of the step may be the profiler's own time." if added else ""
        first = next(iter(report.findings), None)
        look = f" First to look at, for information: {plain(first.title)}." if first else ""
        return f"No single host call is to blame: the host's own work keeps the GPU waiting.{look}{doubt}"
    return "No host call is to blame for idle time."


def _gain(report: Report, it: str = "it") -> str:
    """Return what the cure of the leading finding gives, which is called so."""
    finding = leading_finding(report)
    if finding is None:
        return ""
    if finding.recoverable_ns is None:
        return _at_most(finding, report, it) or _rare(finding, report, it)
    here = is_here(finding, report)
    where = "" if here else f" in process {finding.devices[0].pid} on GPU {finding.devices[0].gpu}"
    step = report.steps.per_step["duration"].p50 if here and "duration" in report.steps.per_step else None
    part = f", {share(finding.recoverable_ns / step)} of the median step" if step else ""
    traced = report.overhead.untold_ns if here else None
    most = "at most" if traced else "about"
    doubt = f" But up to {duration(traced)} of the step may be the profiler's own time." if traced else ""
    if is_handed_on(finding):
        return f"{_in_turn(finding)}.{doubt}"
    gives = f"{most} {alone_words(finding)} a step{where}{part}"
    return f"{_cure(finding, it)} would give {gives}.{_bound(finding.bound_after)}{doubt}"


def is_here(finding: Finding, report: Report) -> bool:
    """Return whether a finding is about the rank whose step is told."""
    shown = (report.steps.gpu, report.steps.pid)
    return not finding.devices or any((device.gpu, device.pid) == shown for device in finding.devices)


def _cure(finding: Finding, it: str) -> str:
    """Return what the prediction did away with: a wait or a pause, the launches of an eager phase, or all lateness."""
    if finding.site.role is not None:
        return f"Capturing {it} as a graph"
    return f"Removing {it}" if finding.occurrences is not None else "A host that is never late, waits apart,"


def _in_turn(finding: Finding) -> str:
    """Return what a wait gives that only hands the wait on when it goes alone."""
    gain = in_words(finding.in_turn_ns, finding.in_turn_range_ns)
    alone = in_words(finding.recoverable_ns, finding.recoverable_range_ns)
    gives = f"Removing the first would give {gain} a step once the waits before it are gone"
    return f"{gives}; alone {alone}, since another wait takes its place" if alone else gives


def _at_most(finding: Finding, report: Report, it: str) -> str:
    """Return the range of what removing a finding may give, where the profiler's part of the step can't be told."""
    spread, traced = finding.recoverable_range_ns, report.overhead.untold_ns
    if spread is None:
        return ""
    doubt = doubt_words(traced)
    if is_handed_on(finding):
        return f"{_in_turn(finding)}: {doubt}."
    return f"{_cure(finding, it)} would give {between(spread)} a step: {doubt}."


def is_fed(report: Report) -> bool:
    """Return whether all hosts keep their GPUs fed: hardly any idle outside graphs, no wait of the usual step leads."""
    ratio, finding = report.steps.bubble_share, leading_finding(report)
    rare = finding is not None and finding.severity == "low" and _few_steps(finding, report) > 0
    inside = finding is None or finding.site.api is None or rare
    known = report.steps.count > 0 and ratio.inter_graph is not None and not names_only(report)
    quiet = (_for_the_host(report) or 0) < FED and not _unknown(report)
    mine = (report.steps.gpu, report.steps.pid)
    ranks = [one for one in report.steps.by_device if one.count and (one.gpu, one.pid) != mine]
    others = all(_waits_for_its_host(one) < FED for one in ranks)
    return known and quiet and others and inside and missing_work(report.trace.capture_mode, report.quality) is None


def _waits_for_its_host(rank: DeviceSteps) -> float:
    """Return the share of its steps that the GPU of a rank idles because launches come late."""
    step = rank.per_step["duration"].mean
    late = sum(mean_of(rank.per_step, name) or 0.0 for name in ("host_late", "launching"))
    return late / step if step else 0.0


def _for_the_host(report: Report) -> float | None:
    """Return the share of the decode time that lies idle outside graphs; without graphs only that for the host.

    There the short gaps between kernels that were queued in time are what lies inside a graph elsewhere.
    """
    inter = report.steps.bubble_share.inter_graph
    queued, whole = (mean_of(report.steps.per_step, name) for name in ("queued", "duration"))
    if inter is None or report.trace.capture_mode != "none" or queued is None or not whole:
        return inter
    return max(inter - queued / whole, 0.0)


def _busy(report: Report, finding: Finding | None) -> str:
    """Return that the host is fine, where the busy time goes, and what to look at first."""
    lies = "goes into waiting for late launches" if report.trace.capture_mode == "none" else "lies idle outside graphs"
    fine = f"The host is fine, stop looking for syncs: only {share(_for_the_host(report))} of the decode time {lies}."
    if finding is not None and finding.site.api is not None:  # a wait, where waits are not to be looked for
        finding = next((one for one in report.findings if one.site.api is None and one.severity != "info"), None)
    look = f" First to look at: {plain(finding.title)}{_elsewhere(finding, report)}." if finding else ""
    return f"{fine}{_busy_with(report)}{look}"


def _busy_with(report: Report) -> str:
    """Return the kinds of kernels that take most of the busy time; nothing where none of their names says more."""
    kernels: dict[str, float] = {}
    for row in report.detail.kernels:
        name = row.category or kernel_name(row.name)
        kernels[name] = kernels.get(name, 0) + row.per_step_ns
    whole = sum(kernels.values())
    most = sorted(kernels.items(), key=lambda kernel: (-kernel[1], kernel[0]))[:_NAMED]
    if not whole or report.trace.capture_mode not in ("node", "none") or set(kernels) == {OTHER}:
        return ""
    goes = ", ".join(f"{plain(name, 60)} {share(ns / whole, 0)}" for name, ns in most)
    return f" Kernel time goes into {goes}."


def _rare(finding: Finding, report: Report, it: str) -> str:
    """Return what a cause without a predicted gain costs; one in few steps costs the median step nothing."""
    if finding.bubble_ns.p50 is None or is_fed(report):
        return ""
    affected = _few_steps(finding, report)
    if not affected:
        return ""
    where = f"{duration(finding.bubble_ns.p50)} {few_words(affected, report)}"
    of = f", {share(finding.idle_share)} of the decode time" if finding.idle_share is not None else ""
    return f"{it.capitalize()} costs {where}{of}; the median step doesn't have it."


def _few_steps(finding: Finding, report: Report) -> int:
    """Return in how many steps a finding is where the median step doesn't have it, else 0."""
    affected = finding.steps_affected or 0
    return affected if 2 * affected < counted_in(report) else 0


def _joint(report: Report) -> str:
    """Return what all waits and pauses give back together.

    Nothing where it is no more than the leading finding gives.
    """
    joint, step = report.joint, report.steps.per_step.get("duration")
    leader = leading_finding(report)
    if joint is None or step is None or step.p50 is None:
        return ""
    alone = (leader.recoverable_ns or 0) if leader and is_here(leader, report) else 0
    now, then = duration(step.p50), duration(joint.step_ns)
    if joint.recoverable_ns <= alone or now == then:
        return ""
    each = "a median step" if _is_uneven(step) else "a step"
    return f"All {joint.findings} waits and pauses together: {now} to {then}{between_words(joint.range_ns)} {each}."


def _row(report: Report) -> WaitChainReport | None:
    """Return the waits that hold the host of the told rank one after the other, where they are to be told as one.

    Not where together they give hardly more than the leading one. A host that is late for the profiler's sake hides
    what they cost: where it leads, they are told beside it.
    """
    rank, leader = (report.steps.gpu, report.steps.pid), leading_finding(report)
    chain = next((one for one in report.wait_chains if (one.gpu, one.pid) == rank), None)
    if chain is None or leader is None:
        return None
    waits = leader.site.api is not None and is_here(leader, report)
    alone = (leader.recoverable_range_ns or (0, 0))[1]
    most = chain.joint.recoverable_range_ns[1]
    return None if most < FED * chain.step_ns or (waits and most <= BEYOND * alone) else chain


def _without_row(chain: WaitChainReport, profilers_ns: int | None = None, *, whose: str = "Together they") -> str:
    """Return what all waits in a row give together, why as a range alone where it is one, and what bounds it then."""
    doubt = f": {doubt_words(profilers_ns)}" if profilers_ns else ""
    return f"{whose} would give {together_words(chain)}{doubt}.{_bound(chain.joint.bound_after)}"


def _bound(after: str | None) -> str:
    return f" The step is then bound by the {words}." if (words := bound_words(after)) else ""


def _rest(report: Report) -> str:
    """Return how much of the idle time the leading finding explains if less than half, and where all of it lies.

    Nothing where its cure gives more than the idle time it is charged with: others' idle time then goes too.
    """
    finding, step = leading_finding(report), mean_of(report.steps.per_step, "duration")
    idle, _ = idle_per_step_ns(report)
    if finding is None or finding.idle_share is None or not step or not idle:
        return ""
    if is_fed(report) or is_handed_on(finding):
        return ""
    explained = finding.idle_share * step
    if explained >= idle / 2 or (finding.recoverable_ns or 0) > BEYOND * explained:
        return ""
    told = [one.idle_share or 0 for one in report.findings if one is not finding]
    parts = {name: mean_of(report.steps.per_step, name) or 0 for name in IDLE_CLASSES}
    largest = sorted(parts.items(), key=lambda part: -part[1])[:2]
    lies = " and ".join(f"{duration(ns)} is {CLASS_LABELS[name]}" for name, ns in largest if ns)
    unexplained = max(idle - explained - sum(told) * step, 0)
    nobody = f"; no finding explains {duration(unexplained)}" if unexplained > _UNEXPLAINED * idle else ""
    explains = f"The first finding explains {duration(explained)} of {duration(idle)} idle a step."
    return f"{explains} Of all that idle time {lies}{nobody}."
