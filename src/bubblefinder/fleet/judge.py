"""What stands out among captures: ranks that hold others up, captures unlike the rest, and a step that drifts."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bubblefinder.fleet.model import Fleet, Row

SAME_RUN_NS: Final = 10_000_000_000
"""Captures that began so near to each other are of the ranks of one run: a launcher starts ranks within seconds."""
STRAGGLES: Final = 0.05
"""A rank straggles if it idles outside graphs for so much of a step longer than the run's median rank."""
OUTLIER_MADS: Final = 5.0
"""So many median absolute deviations away from captures alike ..."""
OUTLIER_SHARE: Final = 0.02
"""... and by so much of their median is an outlier; GPU-bound captures of one thing differ by 0.04 %."""
FEWEST: Final = 5
"""Fewer captures alike have no spread to hold one against, and no drift."""


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank that comes late, and by how much a step more than the run's median rank it idles outside graphs."""

    row: Row
    late_ns: float


@dataclass(frozen=True, slots=True)
class Outlier:
    """A rank whose step is unlike that of captures alike: same GPU, mode and number of ranks."""

    row: Row
    median_ns: float


@dataclass(frozen=True, slots=True)
class Drift:
    """How the step of captures alike moved from the first third of them to the last, by when they began."""

    gpu_name: str
    mode: str
    captures: int
    early_ns: float
    late_ns: float
    spread_ns: float

    @property
    def real(self) -> bool:
        """Whether it moved by more than the captures of a third spread."""
        return abs(self.late_ns - self.early_ns) > max(self.spread_ns, OUTLIER_SHARE * self.early_ns)


def worst(fleet: Fleet, most: int = 10) -> list[Row]:
    """Return the ranks that idle most in a step, outside graphs where the inside was not measured."""
    idle = [(row.bubble_ns if row.bubble_ns is not None else row.inter_ns, row) for row in fleet.rows]
    known = [(ns, row) for ns, row in idle if ns is not None]
    return [row for _, row in sorted(known, key=lambda pair: -pair[0])[:most]]


def runs(fleet: Fleet) -> list[list[Row]]:
    """Return the ranks that ran together: of one capture, or of captures that began within seconds."""
    by_capture: dict[str, list[Row]] = defaultdict(list)
    for row in fleet.rows:
        by_capture[row.path].append(row)
    ordered = sorted(by_capture.values(), key=lambda rows: (rows[0].started_ns is None, rows[0].started_ns or 0))
    found: list[list[Row]] = []
    for rows in ordered:
        began = rows[0].started_ns
        before = found[-1][0].started_ns if found else None
        together = began is not None and before is not None and began - before <= SAME_RUN_NS
        if together:
            found[-1].extend(rows)
        else:
            found.append(list(rows))
    return found


def stragglers(fleet: Fleet) -> list[Straggler]:
    """Return the ranks that others of their run wait for: they idle outside graphs while others spin in collectives."""
    found = []
    for ranks in runs(fleet):
        idle = [row.inter_ns for row in ranks if row.inter_ns is not None]
        if len(idle) < 2:  # noqa: PLR2004 - nobody to wait for
            continue
        middle = statistics.median_low(idle)
        late = [(row, (row.inter_ns or 0.0) - middle, STRAGGLES * (row.step_ns or 0.0)) for row in ranks]
        found += [Straggler(row, ns) for row, ns, line in late if ns > line]
    return sorted(found, key=lambda one: -one.late_ns)


def outliers(fleet: Fleet) -> list[Outlier]:
    """Return the ranks whose step is far from that of captures alike."""
    found = []
    for rows in _alike(fleet.rows):
        steps = [row.step_ns or 0.0 for row in rows]
        middle = statistics.median(steps)
        spread = statistics.median(abs(step - middle) for step in steps)
        line = max(OUTLIER_MADS * spread, OUTLIER_SHARE * middle)
        found += [Outlier(row, middle) for row in rows if abs((row.step_ns or 0.0) - middle) > line]
    return sorted(found, key=lambda one: -abs((one.row.step_ns or 0.0) - one.median_ns))


def drifts(fleet: Fleet) -> list[Drift]:
    """Return how steps moved over the captures' starts, where enough captures are alike."""
    found = []
    for rows in _alike(row for row in fleet.rows if row.started_ns is not None):
        ordered = [row.step_ns or 0.0 for row in sorted(rows, key=lambda row: row.started_ns or 0)]
        third = max(len(ordered) // 3, 1)
        early, late = ordered[:third], ordered[-third:]
        spread = max(max(part) - min(part) for part in (early, late))
        first, last = statistics.median(early), statistics.median(late)
        found.append(Drift(rows[0].gpu_name or "", rows[0].mode, len(rows), first, last, spread))
    return found


def _alike(rows: Iterable[Row]) -> list[Sequence[Row]]:
    """Return the rows that may be held against each other: same GPU, capture mode and number of ranks in a capture."""
    known = [row for row in rows if row.step_ns is not None]
    ranks = Counter(row.path for row in known)
    groups: dict[tuple[str | None, str, int], list[Row]] = defaultdict(list)
    for row in known:
        groups[row.gpu_name, row.mode, ranks[row.path]].append(row)
    return [group for group in groups.values() if len(group) >= FEWEST]
