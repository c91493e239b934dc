"""Findings of two sides, matched by the place in the program they are about, never by rule or position."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Final, TypeVar

from bubblefinder.compare.model import LENGTHS, Change, SiteChange, SiteSide, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from bubblefinder.report.found import Benign, Finding, Site
    from bubblefinder.report.model import Report

_IDLE: Final = frozenset(
    f"step.{name}.{quantile}"
    for name in ("bubble", "inter_graph", "intra_graph")
    for quantile in ("mean", "p50", "p95")
)
_INSIDE: Final = "role.intra_graph.p50"
_NEEDS: Final[Mapping[Status, Status]] = {"new": "worse", "gone": "better"}
_NUMBER: Final = r"\d[\d.,]*(?: (?:ns|us|ms|s|%))?"
_FIGURES: Final = tuple(
    (re.compile(pattern), put)
    for pattern, put in (
        (r"^[\d.,]+ %(?: of the [a-z ]+? (?:is|are))? ", ""),
        (rf" takes {_NUMBER} a step$", " takes long"),
        (rf": {_NUMBER}(?: [a-z]+)+ a step$", ""),  # ": 33.5 graph launches a step"
        (rf" by {_NUMBER} a step$", ""),
        (rf"^{_NUMBER} (?=[a-z])", ""),  # "7 tiny kernels between ..."
        (rf"\b(runs as) {_NUMBER} (?=[a-z])", r"\1 "),  # "... runs as 33 single launches ..."
        (r" \(\d[\d.,]* %\)", ""),  # "cudaEventRecord (31.0 %)"
    )
)
"""Figures in titles of findings, and what is put in their place."""
_WORD: Final = re.compile(r"[a-z]+(?:-[a-z]+)*(?=[ :,]|$)")
_Found = TypeVar("_Found", bound="Finding | Benign")
SEVERITY_ORDER: Final = ("info", "low", "medium", "high")


@dataclass(slots=True)
class _Sightings:
    """What one side's captures say about one site."""

    site: Site
    findings: list[Finding] = field(default_factory=list)
    harmless: int = 0


_Side = dict["Hashable", _Sightings]


def site_changes(base: Sequence[Report], head: Sequence[Report], threshold_ns: float) -> list[SiteChange]:
    """Return the findings of either side, dearest change first.

    A side has a finding if most of its captures do. A finding of both sides is worse or better if its cost a step
    moved by more than `threshold_ns`.
    """
    before, after = _sightings(base), _sightings(head)
    pairs = _paired(before, after)
    changes = [_change(b, h, (len(base), len(head)), threshold_ns) for b, h in pairs]
    return _dearest_first(change for change in changes if change is not None)


def idle_that_stayed(findings: Iterable[SiteChange], rows: Iterable[Change]) -> list[SiteChange]:
    """Return the findings, none called new or gone for idle time that neither came nor went.

    Idle time is charged to one cause. When a wait goes and the host is slow anyway, the gap stays and passes to
    another finding; so one that names no call is new only if some idle time of the step grew, and gone only if some
    shrank. Its status is `unknown` otherwise, and so is that of a wait which a longer step only hides. What the
    tracer adds inside replays is no finding's doing.
    """
    rows = list(rows)
    inside = {row.where["role"]: row for row in rows if row.metric == _INSIDE and row.tracer}
    moved = {row.status for row in rows if row.metric in _IDLE}
    longer = any(row.metric in LENGTHS and row.status == "worse" for row in rows)
    return _dearest_first(
        replace(f, status="unknown", delta_ns=None)
        if (_charged_anew(f) and _NEEDS[f.status] not in moved) or (longer and _still_called(f))
        else _of_its_own(f, inside)
        for f in findings
    )


def _of_its_own(finding: SiteChange, inside: Mapping[str | int, Change]) -> SiteChange:
    """Return a finding about idle time inside replays, better or worse only if that is without the tracer's part."""
    role = finding.site.role
    row = inside.get(role) if role and finding.site.api is None else None
    if row is None or finding.status not in {"better", "worse"} or finding.status == row.status:
        return finding
    return replace(finding, status="same")


def _still_called(finding: SiteChange) -> bool:
    """Tell a wait that head makes as well; that the GPU doesn't run dry under it is no gain in a longer step."""
    return finding.status == "gone" and finding.site.api is not None and not finding.structural


def _charged_anew(finding: SiteChange) -> bool:
    side = finding.head if finding.status == "new" else finding.base
    return finding.status in _NEEDS and finding.site.api is None and side.bubble_ns is not None


def _dearest_first(findings: Iterable[SiteChange]) -> list[SiteChange]:
    return sorted(findings, key=lambda c: (-abs(c.delta_ns or 0), c.head.title or c.base.title or ""))


def cost(finding: Finding) -> float | None:
    """Return what a finding costs a step: what removing it gives where that is known, else its idle time."""
    return finding.recoverable_ns if finding.recoverable_ns is not None else finding.bubble_ns.p50


def _sightings(side: Sequence[Report]) -> _Side:
    seen: _Side = {}
    for report in side:
        for finding, key in _numbered(report.findings):
            seen.setdefault(key, _Sightings(finding.site)).findings.append(finding)
        harmless: list[Finding | Benign] = [*(e.finding for e in report.expected), *report.benign]
        for known, key in _numbered(harmless):
            seen.setdefault(key, _Sightings(known.site)).harmless += 1
    return seen


def _numbered(found: Iterable[_Found]) -> list[tuple[_Found, tuple[Hashable, int]]]:
    """Number what shares a site, in order of its devices: the k-th rank's pairs with the k-th rank's."""
    counts: Counter[Hashable] = Counter()
    numbered = []
    for one in sorted(found, key=lambda f: [(d.gpu, d.pid) for d in f.devices]):
        key = _exact(one)
        numbered.append((one, (key, counts[key])))
        counts[key] += 1
    return numbered


def _exact(found: Finding | Benign) -> Hashable:
    site = found.site
    rule = None if site.api else getattr(found, "rule", None)
    size = None if site.bytes is None else site.bytes.bit_length()
    place = (site.nvtx, site.frame, site.after_role, site.before_role, site.role)
    return rule, site.api, site.copy_kind, site.memory_kind, size, *place


def _loose(seen: _Sightings) -> Hashable:
    site = seen.site
    if site.api:
        return site.api, site.copy_kind, site.nvtx, site.frame
    place = (site.nvtx, site.frame, site.after_role, site.before_role, site.role)
    rule = seen.findings[0].rule if seen.findings else None
    return place if any(place) else rule


def _paired(before: _Side, after: _Side) -> list[tuple[_Sightings | None, _Sightings | None]]:
    """Pair equal sites, then what is left by the call and its place in the program alone.

    Parts of the step may have been renamed, and another rule may speak about the same place.
    """
    pairs: list[tuple[_Sightings | None, _Sightings | None]] = [(before[k], after[k]) for k in before if k in after]
    left: dict[Hashable, list[_Sightings]] = defaultdict(list)
    for key, seen in before.items():
        if key not in after:
            left[_loose(seen)].append(seen)
    for key, seen in after.items():
        if key not in before:
            partners = left[_loose(seen)]
            pairs.append((partners.pop(0) if partners else None, seen))
    return pairs + [(seen, None) for group in left.values() for seen in group]


def _change(
    base: _Sightings | None, head: _Sightings | None, captures: tuple[int, int], threshold_ns: float
) -> SiteChange | None:
    seen = base or head
    if seen is None:
        return None
    before, after = _side(base), _side(head)
    had, has = before.seen * 2 > captures[0], after.seen * 2 > captures[1]
    if not had and not has:
        return None
    delta = _delta(base, head)
    absent = after if had else before
    return SiteChange(
        site=(head or seen).site,
        base=before,
        head=after,
        delta_ns=delta,
        status=_status(had, has, delta, threshold_ns),
        structural=had != has and seen.site.api is not None and absent.seen + absent.benign == 0,
    )


def _status(had: bool, has: bool, delta: float | None, threshold_ns: float) -> Status:  # noqa: FBT001 - a truth table
    if had != has:
        return "new" if has else "gone"
    if delta is None:
        return "unknown"
    if abs(delta) <= threshold_ns:
        return "same"
    return "worse" if delta > 0 else "better"


def _delta(base: _Sightings | None, head: _Sightings | None) -> float | None:
    """Return the change of cost; both sides by the same measure, and an absent finding costs nothing.

    What few steps of both sides have isn't compared by its size in one of them: the mean and the tail are.
    """
    sides = [s.findings if s else [] for s in (base, head)]
    if all(found and all(map(_is_rare, found)) for found in sides):
        return None
    recoverable = all(f.recoverable_ns is not None for found in sides for f in found)
    costs = [_median(found, cost if recoverable else (lambda f: f.bubble_ns.p50)) for found in sides]
    before, after = (0.0 if not found else c for found, c in zip(sides, costs, strict=True))
    return None if before is None or after is None else after - before


def _is_rare(finding: Finding) -> bool:
    """Tell a finding that few steps have: no gain of a median step is given for it."""
    return finding.steps_affected is not None and finding.recoverable_ns is None and not finding.recoverable_range_ns


def _side(seen: _Sightings | None) -> SiteSide:
    found = seen.findings if seen else []
    worst = max(found, key=lambda f: SEVERITY_ORDER.index(f.severity), default=None)
    return SiteSide(
        seen=len(found),
        benign=seen.harmless if seen else 0,
        rule=worst.rule if worst else None,
        title=_neutral(worst.title) if worst else None,
        severity=worst.severity if worst else None,
        per_step_count=_median(found, lambda f: f.per_step_count),
        bubble_ns=_median(found, lambda f: f.bubble_ns.p50),
        host_blocked_ns=_median(found, lambda f: f.host_blocked_ns.p50),
        recoverable_ns=_median(found, lambda f: f.recoverable_ns),
        recoverable_range_ns=_median_ends(found),
        steps_affected=_median(found, lambda f: f.steps_affected),
    )


def _median_ends(found: list[Finding]) -> list[float] | None:
    ranges = [f.recoverable_range_ns for f in found if f.recoverable_range_ns is not None]
    return [median(ends) for ends in zip(*ranges, strict=True)] if ranges else None


def _neutral(title: str) -> str:
    """Return a title without figures: they are one side's, and it stands beside the other's.

    It begins with a capital unless a name from code begins it, as in ``plan() copies``.
    """
    told = title
    for figure, put in _FIGURES:
        told = figure.sub(put, told)
    return told[:1].upper() + told[1:] if _WORD.match(told) else told


def _median(found: list[Finding], value: Callable[[Finding], float | None]) -> float | None:
    known = [v for f in found if (v := value(f)) is not None]
    return median(known) if known else None
