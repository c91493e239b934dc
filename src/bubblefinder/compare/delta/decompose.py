"""From the accounts of two sides to the change of the mean step in parts that sum to it."""

from __future__ import annotations

from itertools import accumulate, groupby, pairwise
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.delta.align import paired
from bubblefinder.compare.delta.front import brought_forward, held_back
from bubblefinder.compare.delta.inside import Leaf, changed_work
from bubblefinder.compare.delta.model import Delta, Part, Sum
from bubblefinder.compare.delta.outside import changed_idle
from bubblefinder.timeline.model import LEDGER_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bubblefinder.compare.delta.side import Side
    from bubblefinder.compare.delta.tracer import Delay

SMALLEST: Final = 0.001
"""Parts below this share of the sum of all changes go into the residual,"""
LEFT: Final = 0.01
"""as long as that stays below this share of the change: where much offsets much, small parts are no small residual."""
MOST_PARTS: Final = 100
_ALWAYS: Final = frozenset({"to eager", "to graph"})
"""Listed whatever they add themselves: what such a move costs lies on the host."""
EAGER: Final = "outside replays"
IDLE: Final = "idle outside replays"
LEFT_OUT: Final = "captures that replay other graphs"


def decomposed(
    rank: int, base: Side, head: Side, classes: tuple[Mapping[str, float], Mapping[str, float]], delay: Delay
) -> Delta:
    """Return the change of a rank's mean step in parts.

    `classes` are the means of every ledger class of a step on either side, which sum to the mean step; `delay` is how
    much later every node begins in each capture.
    """
    old, new = classes
    before, after = round(base.mean_ns), round(head.mean_ns)
    leaves = [*_replayed(base, head, delay), *changed_idle(base, head)]
    parts = _listed(leaves, after - before)
    return Delta(
        rank=rank,
        base_ns=before,
        head_ns=after,
        delta_ns=after - before,
        classes=_sums([(name, old.get(name, 0.0), new.get(name, 0.0)) for name in LEDGER_CLASSES], before, after),
        roles=_sums(_roles(base, head), before, after),
        parts=parts,
        residual_ns=after - before - sum(part.delta_ns for part in parts),
    )


def _replayed(base: Side, head: Side, delay: Delay) -> Iterator[Leaf]:
    """Yield the change of all work as if every node began as soon on both sides, and apart from it that they don't."""
    old, new = fmean(delay.base_ns), fmean(delay.head_ns)
    yield from changed_work(brought_forward(base, old), brought_forward(head, new), abs(new - old))
    before, after = held_back(base, old), held_back(head, new)
    for role in dict.fromkeys([*before, *after]):
        nodes = max(len(side.roles[role].names) for side in (base, head) if role in side.roles)
        yield Leaf("node gaps", role, nodes=nodes, base_ns=before.get(role, 0.0), head_ns=after.get(role, 0.0))


def _listed(leaves: Iterable[Leaf], delta_ns: int) -> list[Part]:
    """Return the leaves that say the same as one part each, the largest change first, without the tiniest."""
    told = [part for part in _merged(leaves) if part.delta_ns or part.kind in _ALWAYS]
    parts = sorted(told, key=lambda part: (-abs(part.delta_ns), part.kind, part.name or ""))
    least = SMALLEST * fsum(abs(part.delta_ns) for part in parts)
    left = list(accumulate(reversed([part.delta_ns for part in parts])))[::-1]
    small = (abs(part.delta_ns) < least for part in parts)
    net = (abs(rest) <= LEFT * abs(delta_ns) for rest in left)
    shown = next((k for k, both in enumerate(zip(small, net, strict=True)) if all(both)), len(parts))
    return [part for k, part in enumerate(parts) if k < min(shown, MOST_PARTS) or part.kind in _ALWAYS]


def _merged(leaves: Iterable[Leaf]) -> list[Part]:
    def key(leaf: Leaf) -> tuple[str, ...]:
        return tuple(text or "" for text in (leaf.kind, leaf.role, leaf.name, leaf.head_name, leaf.what))

    return [_part(list(same)) for _, same in groupby(sorted(leaves, key=key), key)]


def _part(same: Sequence[Leaf]) -> Part:
    first = same[0]
    inside = [leaf.nodes for leaf in same if leaf.nodes is not None]
    before, after = (fsum(getattr(leaf, name) for leaf in same) for name in ("base_ns", "head_ns"))
    counts = [(fsum if inside else max)(getattr(leaf, name) for leaf in same) for name in ("base_count", "head_count")]
    return Part(
        kind=first.kind,
        role=first.role,
        name=first.name,
        head_name=first.head_name,
        what=first.what,
        nodes=sum(inside) if inside else None,
        base_count=counts[0] if any(counts) else None,
        head_count=counts[1] if any(counts) else None,
        base_ns=round(before),
        head_ns=round(before) + round(after - before),
        delta_ns=round(after - before),
    )


def _roles(base: Side, head: Side) -> list[tuple[str, float, float]]:
    """Return what each role, the other work and the idle time outside take of a step."""
    pairs = paired(base.roles, head.roles)
    rows = [(role or "other graphs", base.roles[role].total_ns, head.roles[other].total_ns) for role, other in pairs]
    old, new = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    rows += [(role or "other graphs", nodes.total_ns, 0.0) for role, nodes in base.roles.items() if role not in old]
    rows += [(role or "other graphs", 0.0, nodes.total_ns) for role, nodes in head.roles.items() if role not in new]
    eager = [fsum(work.cost_ns for work in side.eager.values()) for side in (base, head)]
    idle = [fsum(row.ns for row in side.idle.values()) for side in (base, head)]
    rows += [(EAGER, eager[0], eager[1]), (IDLE, idle[0], idle[1])]
    left = base.mean_ns - fsum(row[1] for row in rows), head.mean_ns - fsum(row[2] for row in rows)
    return [*rows, (LEFT_OUT, *left)]


def _sums(rows: Sequence[tuple[str, float, float]], base_ns: int, head_ns: int) -> list[Sum]:
    """Return rows whose rounded times sum to the rounded means: each rounds what is summed up to it."""
    before, after = _rounded([row[1] for row in rows], base_ns), _rounded([row[2] for row in rows], head_ns)
    told = zip(rows, before, after, strict=True)
    return [Sum(name=name, base_ns=old, head_ns=new, delta_ns=new - old) for (name, *_), old, new in told if old or new]


def _rounded(values: Sequence[float], total: int) -> list[int]:
    edges = [round(fsum(values[:number])) for number in range(len(values))] + [total]
    return [after - before for before, after in pairwise(edges)]
