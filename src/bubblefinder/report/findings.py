"""The findings of a report, from what the rules matched; and the waits under which the GPU stayed fed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from bubblefinder.causes.facts import SiteFacts, StepFacts
from bubblefinder.causes.step_parts import HoleFacts, QueueFacts, RoleFacts, SkewFacts
from bubblefinder.intervals import percentile
from bubblefinder.lookup import kept, places, where
from bubblefinder.replay.doubt import Doubt
from bubblefinder.report.chains import chain_words, in_turn
from bubblefinder.report.found import Benign, DeviceRef, Finding, Joint, Quantiles, Site
from bubblefinder.report.sentences import rank_words
from bubblefinder.timeline.rank import Rank
from bubblefinder.trace.model import pid_of
from bubblefinder.units import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bubblefinder.pipeline import Analysis
    from bubblefinder.replay.recoverable import Recoverable
    from bubblefinder.rules.model import Match, Verdicts
    from bubblefinder.rules.subjects import Subject
    from bubblefinder.timeline.model import Timeline

_PRICED = StepFacts | SiteFacts | HoleFacts | RoleFacts | QueueFacts
_SITE = ("api", "copy_kind", "memory_kind", "nvtx", "frame", "after_role", "before_role")


def finding(match: Match, cured: Recoverable, ranks: int) -> Finding:
    """Return one match as a finding, with the step that its cure would leave; of how many ranks it names its own."""
    subject = match.subject
    doubt = Doubt(cured.untold_ns, getattr(subject, "left_share", 1.0))
    rare = isinstance(subject, _PRICED) and match.recoverable_ns is None
    told = None if rare else cured.of(subject)
    then = told if doubt.told else None
    turn, turn_range = in_turn(subject, cured)
    devices = [DeviceRef(gpu=gpu, pid=pid_of(process)) for gpu, process in match.devices]
    named = any(f"GPU {one.gpu}" in match.message for one in devices)
    where = f"Seen on {rank_words(devices)} alone." if len(devices) < ranks and not named else ""
    return Finding(
        rule=match.rule,
        title=match.title,
        severity=match.severity,
        confidence=match.confidence,
        devices=devices,
        site=_site(subject),
        per_step_count=getattr(subject, "per_step_count", None),
        occurrences=getattr(subject, "occurrences", None),
        steps_affected=getattr(subject, "steps_affected", None),
        host_blocked_ns=Quantiles(
            p50=getattr(subject, "blocked_p50_ns", None), p95=getattr(subject, "blocked_p95_ns", None)
        ),
        bubble_ns=Quantiles(p50=match.bubble_p50_ns, p95=getattr(subject, "bubble_p95_ns", None)),
        recoverable_ns=then.recoverable_ns if then else None,
        evidence=list(match.evidence),
        message=" ".join((match.message, *([where] if where else []), *chain_words(subject, cured))),
        remedy=match.remedy,
        references=list(match.references),
        also_matches=list(match.also_matches),
        step_after_ns=then.step_ns if then else None,
        bound_after=then.bound.value if then else None,
        in_turn_ns=turn,
        in_turn_range_ns=turn_range,
        idle_share=_idle_share(subject, match.bubble_p50_ns),
        recoverable_range_ns=list(doubt.gains(told)) if told else None,
        step_after_range_ns=list(then.range_ns) if then else None,
        caveats=list(told.notes) if told else [],
    )


def _idle_share(subject: Subject, bubble_ns: float | None) -> float | None:
    """Return the share of the decode time that lies idle for it; null where what is told is no cause of idle time."""
    if bubble_ns is None and isinstance(subject, RoleFacts | StepFacts):
        return None
    names = {SiteFacts: "bubble_share", StepFacts: "host_slow_share", SkewFacts: None}
    name = names.get(type(subject), "idle_share")
    value: float | None = getattr(subject, name) if name else None
    return value


def joint(cured: Recoverable, verdicts: Verdicts, rank: Rank | None) -> Joint | None:
    """Return what a rank gains without all waits and pauses that are found, if there are several."""
    then = cured.together.get(rank) if rank else None
    told = (*verdicts.findings, *(covered.match for covered in verdicts.expected))
    causes = [match for match in told if isinstance(match.subject, SiteFacts | HoleFacts | QueueFacts)]
    mine = [match for match in causes if rank in {Rank(*device) for device in match.devices}]
    if then is None or len(mine) < 2:  # noqa: PLR2004 - one alone has its own gain
        return None
    return Joint(
        findings=len(mine),
        step_ns=then.step_ns,
        recoverable_ns=then.recoverable_ns,
        range_ns=list(then.range_ns),
    )


def _site(subject: Any) -> Site:  # noqa: ANN401 - any of the rules' subjects
    known = {name: getattr(subject, name, None) for name in (*_SITE, "thread", "role")}
    return Site(bytes=getattr(subject, "bytes", None), **known)


def benign(analysis: Analysis) -> list[Benign]:
    """Return the waits that cost no GPU time in the decode steps, nor those of their group, longest first."""
    windows, waits = analysis.steps.windows, analysis.causes.waits
    decode = analysis.steps.decode
    inside = np.append(decode.to_numpy(), False)[places(waits["window_index"])]
    waits = kept(waits, pl.Series(inside) & ~waits["joined"])
    costly = np.isin(waits["group"].to_numpy(), waits["group"].filter(waits["drained"]).to_numpy())
    fed = kept(waits, waits["awaits"] & ~pl.Series(costly))
    if fed.is_empty():
        return []
    counts = Counter(windows[["gpu", "process"]].pipe(where, decode).iter_rows())
    groups = fed.group_by(*_SITE, "process", maintain_order=True)
    entries = [_benign(analysis.timeline, rows, counts) for _, rows in groups]
    return sorted(entries, key=lambda entry: -(entry.host_blocked_ns.p50 or 0))


def _benign(timeline: Timeline, rows: pl.DataFrame, counts: Mapping[tuple[int, int], int]) -> Benign:
    lanes = rows[["gpu", "process"]].unique(maintain_order=True).rows()
    blocked = rows.group_by("window_index").agg(pl.col("blocked_ns").sum())["blocked_ns"].to_numpy()
    middle, high = (percentile(blocked, q) for q in (50, 95))
    first = rows.row(0, named=True)
    steps = sum(counts[lane] for lane in lanes)
    return Benign(
        devices=[DeviceRef(gpu=gpu, pid=pid_of(process)) for gpu, process in lanes],
        site=Site(
            bytes=rows["bytes"].drop_nulls().mode().sort().first(),  # type: ignore[arg-type]
            thread=timeline.trace.thread_names.get(first["thread"]),
            **{name: first[name] for name in _SITE},
        ),
        per_step_count=len(rows) / steps if steps else None,
        occurrences=len(rows),
        host_blocked_ns=Quantiles(p50=middle, p95=high),
        message=f"the GPU had work all the while: {duration(middle)} of waiting a step cost it nothing",
    )
