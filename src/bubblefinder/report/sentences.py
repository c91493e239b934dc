"""The words that every format uses for the same thing."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bubblefinder.report.prediction_sentences import gain_words, in_turn_words
from bubblefinder.steps.reasons import NO_STEP
from bubblefinder.units import count, duration, plural, printable, share

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bubblefinder.report.found import DeviceRef, Finding, Site
    from bubblefinder.report.model import Report, Selection, Stats, StepsReport
    from bubblefinder.trace.model import QualityNote

_RANKS_NAMED: Final = 4
CLASS_LABELS: Final = {
    "busy": "busy",
    "intra_graph": "inside graphs",
    "host_late": "host late",
    "launching": "launching",
    "queued": "queued",
    "unattributed": "unattributed",
    "unrecorded": "unrecorded",
    "profiler": "profiler",
}
CLASS_MEANINGS: Final = {
    "busy": "at least one kernel, copy or memset was running",
    "intra_graph": "idle between the kernels of a graph replay: launch and prologue cost of small kernels",
    "host_late": "idle, and the host had not yet begun the launch call that ended the gap",
    "launching": "idle while that launch call was running",
    "queued": "idle after the launch call had returned: front end, stream dependency or copy engine",
    "unattributed": "idle, and the operation that ended the gap has no launch call in the capture",
    "unrecorded": "a launch call has no GPU record here, so the GPU may have worked: not counted as idle",
    "profiler": "idle while the profiler flushed its own buffers",
}
EXCLUDED_LABELS: Final = {
    "head": "before the first step",
    "tail": "unclosed last window",
    "capture_start": "capture start",
    "prefill": "prefill work",
    "other_work": "other work than the steps'",
    "set_up": "set-up before the first step",
    "no_load": "waiting for work",
    "other_regime": "of another regime",
    "not_selected": "not selected",
}
MODE_LABELS: Final = {
    "node": "node capture",
    "graph": "graph capture",
    "mixed": "capture of nodes and of whole graphs",
    "none": "capture without CUDA graphs",
    "unseen": "capture whose graph work is not in the export",
}
KIND_LABELS: Final = {
    "nvtx": "NVTX range",
    "api": "API call",
    "launch": "launch call",
    "wait": "wait, GPU fed",
    "blamed_wait": "wait to blame",
    "replay": "graph replay",
    "operation": "operation",
    "operations": "operations, merged",
} | {name: f"idle: {label}" for name, label in CLASS_LABELS.items() if name != "busy"}
"""What the bars of a drawn step are called."""
EVERY_STEP: Final = "a step"
_FEW: Final = 4
"""As many batch sizes are told one by one."""
_FROM: Final = {"nvtx": "NVTX", "launch_shapes": "launch shapes"}
_GITHUB: Final = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)", re.ASCII)


def class_label(name: str) -> str:
    """Return the label of a ledger class; an unknown class keeps its name."""
    return CLASS_LABELS.get(name, name)


@lru_cache(maxsize=1 << 14)
def plain(text: str | None, limit: int = 160) -> str:
    """Return a name from a capture on one line, without control characters, at most `limit` long."""
    return printable(text or "", limit)


def site_words(site: Site) -> str:
    """Return where a wait is, in one line: call, copy, place in the program, place in the step."""
    copy = " ".join(part for part in (site.memory_kind, site.copy_kind) if part)
    size = f"{count(site.bytes)} B" if site.bytes is not None else ""
    parts = [plain(site.api), " ".join(part for part in (copy, size) if part), place_words(site), between_words(site)]
    return ", ".join(part for part in parts if part)


def bound_words(bound: str | None) -> str:
    """Return what bounds a step after a cure, to stand behind ``bound by the``."""
    known = {"gpu": "GPU", "host": "host", "wait": "host and the GPU in turn"}
    return known.get((bound or "").lower(), plain(bound, 40))


def place_words(site: Site) -> str:
    """Return the NVTX range or frame of a site, if it has one."""
    place = site.nvtx or site.frame
    return f"in {plain(place)}" if place else ""


def between_words(site: Site) -> str:
    """Return the roles around a site."""
    if site.after_role and site.before_role:
        return f"between {plain(site.after_role, 60)} and {plain(site.before_role, 60)}"
    if site.after_role:
        return f"after {plain(site.after_role, 60)}"
    return f"before {plain(site.before_role, 60)}" if site.before_role else ""


def gravest_first(notes: Iterable[QualityNote]) -> tuple[QualityNote, ...]:
    """Return the notes, the gravest first."""
    return tuple(sorted(notes, key=lambda note: ("error", "warn", "info").index(note.level)))


def note_count(note: QualityNote) -> str:
    """Return how many things a note concerns, in brackets; nothing where it says so itself or there is one."""
    told = note.count is None or note.count == 1 or f"{note.count:,}" in note.message
    return "" if told else f"({count(note.count)})"


def per_step_words(finding: Finding, report: Report) -> str:
    """Return which steps the idle of a finding is that of: every one, or the few that have it."""
    affected = finding.steps_affected
    return EVERY_STEP if not affected or 2 * affected > counted_in(report) else few_words(affected, report)


def rank_words(devices: Sequence[DeviceRef]) -> str:
    """Return where a finding was seen: each GPU with its process, the first few of many."""
    named = ", ".join(f"GPU {one.gpu} (process {one.pid})" for one in devices[:_RANKS_NAMED])
    more = len(devices) - _RANKS_NAMED
    return f"{named} and {more} more" if more > 0 else named


def counted_in(report: Report) -> int:
    """Return among how many steps those with a finding are counted: some count here that the statistics leave out."""
    excluded = report.steps.excluded.items()
    return report.steps.count + sum(number for reason, number in excluded if reason not in NO_STEP)


def few_words(affected: int, report: Report) -> str:
    """Return in how many steps something was seen, of how many."""
    steps = counted_in(report)
    each = "" if affected == 1 else "each of "
    more = " (left-out ones counted)" if steps > report.steps.count else ""
    return f"in {each}{affected:,} of {plural(steps, 'step')}{more}"


def cost_words(finding: Finding, report: Report) -> str:
    """Return what a finding costs in the steps that have it, and what the median step would be without its cause."""
    where = per_step_words(finding, report)
    spent = (("bubble", finding.bubble_ns.p50), ("host blocked", finding.host_blocked_ns.p50))
    now = ", ".join(f"{name} {duration(value)}" for name, value in spent if value)
    turn = in_turn_words(finding)
    gain = f"to recover {gain}{turn}" if (gain := gain_words(finding)) else ""
    step = f"step then {duration(finding.step_after_ns)}" if finding.step_after_ns and not turn else ""
    then = ", ".join(part for part in (gain, step) if part)
    after = bound_words(finding.bound_after) if finding.bound_after and not turn and (now or then) else ""
    bound = f" (then bound by the {after})" if after else ""
    if where == EVERY_STEP:
        told = ", ".join(part for part in (now, then) if part)
        return told and f"{where}: {told}{bound}"
    return "; ".join(part for part in (now and f"{where}: {now}", then and f"a median step: {then}{bound}") if part)


def reference_url(text: str) -> str:
    """Return where a reference can be read: a https address as it is, ``owner/project#12`` on GitHub, else nothing."""
    short = _GITHUB.fullmatch(text)
    if short:
        return f"https://github.com/{short[1]}/issues/{short[2]}"
    return plain(text, 400) if text.startswith("https://") else ""


def counted_words(report: Report) -> str:
    """Return in how many of the steps kernels and gaps were counted, if not in all."""
    counted = report.detail.counted_steps
    if counted is None or counted >= report.steps.count:
        return ""
    return f" (counted in {counted:,} of {report.steps.count:,} steps)"


def scope_words(report: Report) -> str:
    """Return which steps stand behind the numbers."""
    steps = report.steps
    if not steps.count:
        return "no decode steps"
    left_out = sum(steps.excluded.values())
    took = f" ({duration(sum(steps.excluded_ns.values()))})" if steps.excluded_ns else ""
    excluded = f", {plural(left_out, 'window')} left out{took}" if left_out else ""
    return f"{plural(steps.count, 'decode step')}{excluded}, found by {steps.method} ({steps.confidence} confidence)"


def left_out_words(report: Report) -> str:
    """Return which windows were left out of the statistics, in number and in time; nothing if none were."""
    steps = report.steps
    parts = []
    for reason, number in steps.excluded.items():
        took = f" ({duration(steps.excluded_ns[reason])})" if reason in steps.excluded_ns else ""
        parts.append(f"{number:,} {EXCLUDED_LABELS.get(reason, plain(reason))}{took}")
    return ", ".join(parts)


def steps_sentences(report: Report) -> list[str]:
    """Return what else must be known of the steps behind the figures: what was chosen, other regimes, another way."""
    steps = report.steps
    said = [_selection_words(steps.selection)] if steps.selection else []
    said += [
        f"Regime {number} of {len(steps.regimes)}, windows {one.indexes[0]:,} to {one.indexes[1]:,}: "
        f"{plural(one.count, 'step')} of {duration(one.per_step['duration'].p50)}"
        + (f", {share(one.bubble_share.total)} idle" if one.bubble_share.total is not None else "")
        + (f", {requests_words(one.requests)}" if one.requests else "")
        + ("." if one.headline else ", not in the figures of the headline.")
        for number, one in enumerate(steps.regimes, start=1)
    ]
    if steps.rival:
        said.append(
            f"Nearly as well the capture has {plural(steps.rival.count, 'step')}: "
            f"`--step-by '{plain(steps.rival.step_by, 120)}'` takes them."
        )
    return [*said, *requests_sentence(steps)]


def _selection_words(chosen: Selection) -> str:
    """Return what the user chose, and what the whole capture says."""
    parts = []
    if chosen.window_ns:
        parts.append(f"work from {duration(chosen.window_ns[0])} to {duration(chosen.window_ns[1])} (--window)")
    if chosen.steps:
        parts.append(f"steps {chosen.steps[0]:,} to {chosen.steps[1] - 1:,} (--steps)")
    if chosen.step_by:
        parts.append(f"steps by {plain(chosen.step_by, 120)} (--step-by)")
    whole = f"{plural(chosen.count, 'step')} of {duration(chosen.step_p50_ns)}" if chosen.count else "no steps"
    return f"Asked for: {', '.join(parts)}. The whole capture has {whole}, by {chosen.method} ({chosen.confidence})."


def requests_sentence(steps: StepsReport) -> list[str]:
    """Return how many requests the steps serve and what says so; nothing where nothing does.

    Reports that don't say what told the numbers have them from NVTX, and know them of every step.
    """
    if steps.requests is None:
        return []
    told = steps.requests_steps
    unknown = steps.count - sum(told.values()) if told else 0
    several = steps.requests.min != steps.requests.max
    if several and len(told) in range(1, _FEW + 1):
        numbers = ", ".join(f"{int(number):,} in {plural(of_them, 'step')}" for number, of_them in told.items())
    else:
        numbers = _range(steps.requests)
    missing = f", unknown in {plural(unknown, 'step')}" if unknown else ""
    mixed = "; the figures are of all of them" if several else ""
    return [f"Requests a step: {numbers}{missing} (from {_FROM.get(steps.requests_from or '', 'NVTX')}){mixed}."]


def requests_words(requests: Stats) -> str:
    """Return ``8 requests`` or ``3 to 16 requests, 12 in the median``."""
    if requests.min == requests.max:
        return plural(requests.max or 0, "request")
    return _range(requests, " requests")


def _range(requests: Stats, noun: str = "") -> str:
    if requests.min == requests.max:
        return f"{requests.max:,}{noun}"
    return f"{requests.min:,} to {requests.max:,}{noun}, {requests.p50:g} in the median"
