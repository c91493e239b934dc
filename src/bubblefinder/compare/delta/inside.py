"""What changed inside the replays and in the work outside them, node by node."""

from __future__ import annotations

from itertools import combinations
from math import fsum
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bubblefinder.causes.collective_names import is_collective
from bubblefinder.compare.delta.align import ALIKE, NOBODY, aligned, paired
from bubblefinder.compare.delta.front import overlap
from bubblefinder.compare.delta.side import COLUMNS, Nodes, Side, Work
from bubblefinder.report.account import REPLAY, UNSEEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from bubblefinder.compare.delta.model import Kind
    from bubblefinder.report.account import Shapes

_NO_KERNEL: Final = (" copy", "memset")
AS_OFTEN: Final = 0.1
"""Nodes run as often as their role is replayed up to this part: a window cuts the first and the last replay."""
MOST_APART: Final = 10
"""Roles among which those of the other side are looked for: each choice of them is tried, a thousand of so many."""
_SIZES: Final = (("registers", "registers"), ("shared_bytes", "B of shared memory"), ("local_bytes", "B spilled"))


class Leaf(NamedTuple):
    """The smallest part of a change; counts and times a step."""

    kind: Kind
    role: str | None = None
    name: str | None = None
    head_name: str | None = None
    what: str | None = None
    nodes: int | None = None
    base_count: float = 0.0
    head_count: float = 0.0
    base_ns: float = 0.0
    head_ns: float = 0.0


def changed_work(base: Side, head: Side, least_ns: float = 0.0) -> Iterator[Leaf]:
    """Yield what became of every node and of all work outside replays; sums to the change of both.

    Nodes that overlap by no more than `least_ns` a time don't overlap.
    """
    pairs = paired(base.roles, head.roles)
    for role, other in pairs:
        yield from _replayed(other, base.roles[role], head.roles[other], least_ns)
    gone = _longest_first(base.roles, {pair[0] for pair in pairs})
    come = _longest_first(head.roles, {pair[1] for pair in pairs})
    kept, found = _replayed_still(gone, come), _replayed_still(come, gone)
    taken = set[str]()
    for role, moved in _fallen(_without(gone, kept), base.eager, head.eager).items():
        was = gone.pop(role)
        yield Leaf("to eager", role, nodes=len(was.names), base_count=fsum(was.count), base_ns=fsum(was.cost_ns))
        yield from (_eager("to eager", role, name, base.eager, head.eager) for name in sorted(moved - taken))
        taken |= moved
    for role, moved in _fallen(_without(come, found), head.eager, base.eager).items():
        now = come.pop(role)
        yield Leaf("to graph", role, nodes=len(now.names), head_count=fsum(now.count), head_ns=fsum(now.cost_ns))
        yield from (_eager("to graph", role, name, base.eager, head.eager) for name in sorted(moved - taken))
        taken |= moved
    if gone or come:
        yield from _replayed(None, _pooled(gone), _pooled(come), least_ns)
    for name in [*head.eager, *(name for name in base.eager if name not in head.eager)]:
        if name not in taken:
            yield _eager(None, None, name, base.eager, head.eager)


def _longest_first(roles: Mapping[str | None, Nodes], known: Collection[str | None]) -> dict[str | None, Nodes]:
    """Return the roles without a like, the longest first: eager work that several may have become is the first's."""
    left = {role: nodes for role, nodes in roles.items() if role not in known}
    return dict(sorted(left.items(), key=lambda one: -one[1].total_ns))


def _replayed_still(roles: Mapping[str | None, Nodes], others: Mapping[str | None, Nodes]) -> set[str | None]:
    """Return which roles of one side are those of the other, where several are told apart on one alone.

    Where the inside of replays is not in the capture they are those that are replayed as often together, and most
    nearly as long. Of more than MOST_APART none are.
    """
    if not others or len(roles) > MOST_APART or not all(map(_unseen, (*roles.values(), *others.values()))):
        return set()
    often, long = _together(others.values())
    sets = [set(some) for number in range(1, len(roles)) for some in combinations(roles, number)]
    sums = [(_together([roles[role] for role in some]), some) for some in sets]
    near = [(abs(took - long), some) for (count, took), some in sums if abs(count - often) <= AS_OFTEN * often]
    return min(near, key=lambda one: one[0])[1] if near else set()


def _together(roles: Collection[Nodes]) -> tuple[float, float]:
    return sum(float(nodes.count.sum()) for nodes in roles), sum(nodes.total_ns for nodes in roles)


def _unseen(nodes: Nodes) -> bool:
    """Tell a role of replays whose inside is not in the capture, be they of several graphs."""
    return set(nodes.names) == {REPLAY}


def _without(roles: Mapping[str | None, Nodes], some: set[str | None]) -> dict[str | None, Nodes]:
    return {role: nodes for role, nodes in roles.items() if role not in some}


def _pooled(roles: Mapping[str | None, Nodes]) -> Nodes:
    """Return roles that have no like on the other side as one sequence: their names may be all that differs.

    Replays whose inside is not in the capture are one node.
    """
    nodes = list(roles.values())
    names = tuple(name for one in nodes for name in one.names)
    columns = [np.concatenate([np.zeros(0), *(getattr(one, name) for one in nodes)]) for name in COLUMNS]
    if nodes and all(map(_unseen, nodes)):
        names, columns = (REPLAY,), [column.sum(keepdims=True) for column in columns]
    count, cost, gap, early, ran = columns
    return Nodes(names, 0.0, count, cost, gap, early, ran)


def _fallen(
    roles: Mapping[str | None, Nodes], before: Mapping[str, Work], after: Mapping[str, Work]
) -> dict[str | None, set[str]]:
    """Return which roles turned into eager work, and into which."""
    found = {role: _moved(nodes, before, after) for role, nodes in roles.items()}
    return {role: names for role, names in found.items() if names}


def _moved(nodes: Nodes, before: Mapping[str, Work], after: Mapping[str, Work]) -> set[str]:
    """Return the names of eager work that a role turned into: its own kernels where most of them are there.

    A replay that was recorded whole names none: then it is all work that came as it went.
    """
    more = {name for name, work in after.items() if work.count > before.get(name, Work()).count + ALIKE}
    if len(nodes.names) == 1:
        return {name for name in more if name not in before and not name.endswith(_NO_KERNEL)}
    own = set(nodes.names)
    return own & more if len(own & more) > ALIKE * len(own) else set()


def _eager(kind: Kind | None, role: str | None, name: str, base: Mapping[str, Work], head: Mapping[str, Work]) -> Leaf:
    before, after = base.get(name, Work()), head.get(name, Work())
    reshaped = before.shape and after.shape and before.shape != after.shape
    what = f"{before.shape} to {after.shape}" if reshaped else None
    told: Kind = "gone kernel" if name not in head else "same kernel" if name in base else "new kernel"
    told = "not told" if name == UNSEEN else "launch shape" if what else "collective" if is_collective(name) else told
    sides = before.count, after.count, before.cost_ns, after.cost_ns
    if kind:
        return Leaf(kind, role, None, None, None, None, *sides)
    return Leaf(told, role, name, None, what, None, *sides)


def _replayed(role: str | None, base: Nodes, head: Nodes, least_ns: float) -> Iterator[Leaf]:
    """Yield the change of a role: first by how often it is replayed, then by what a replay takes."""
    places = aligned(base.names, head.names)
    more = _more(base, head, places)
    total = base.total_ns
    if more != 1.0:
        counts = base.replays, head.replays
        yield Leaf("replays", role, None, None, None, None, *counts, total, total * more)
    for k, j in places:
        if j == NOBODY:
            gone = Leaf("gone kernel", role, base.names[k], nodes=1)
            yield gone._replace(base_count=base.count[k], base_ns=base.cost_ns[k] * more)
        elif k == NOBODY:
            come = Leaf("new kernel", role, head.names[j], nodes=1)
            yield come._replace(head_count=head.count[j], head_ns=head.cost_ns[j])
        else:
            yield _node(_kind(base, head, (k, j), least_ns), role, (base, head), (k, j), more)


def _more(base: Nodes, head: Nodes, places: Sequence[tuple[int, int]]) -> float:
    """Return how many times as often a role is replayed on head, if the nodes that both sides have run so often.

    Graphs that are told apart on one side may be one role on the other, which is replayed as often as all of them.
    """
    if not base.replays or not head.replays:
        return 1.0
    more = head.replays / base.replays
    same = [(k, j) for k, j in places if NOBODY not in {k, j} and base.names[k] == head.names[j] and base.count[k]]
    counted = median([head.count[j] / base.count[k] for k, j in same]) if same else more
    return more if abs(counted - more) <= AS_OFTEN * more else 1.0


def _node(kind: Kind, role: str | None, sides: tuple[Nodes, Nodes], place: tuple[int, int], more: float) -> Leaf:
    (base, head), (k, j) = sides, place
    name, other = base.names[k], head.names[j]
    what = _reshaped(base.shapes, head.shapes, k, j) if kind == "launch shape" else None
    counts, times = (base.count[k], head.count[j]), (base.cost_ns[k] * more, head.cost_ns[j])
    return Leaf(kind, role, name, other if other != name else None, what, 1, *counts, *times)


def _kind(base: Nodes, head: Nodes, place: tuple[int, int], least_ns: float) -> Kind:
    k, j = place
    if base.names[k] != head.names[j]:
        return "another kernel"
    if _reshaped(base.shapes, head.shapes, k, j):
        return "launch shape"
    changed = overlap(base, head, np.array([k]), np.array([j]), least_ns)[0]
    if changed:
        return "overlap gained" if changed > 0 else "overlap lost"
    return "collective" if is_collective(base.names[k]) else "same kernel"


def _reshaped(base: Shapes | None, head: Shapes | None, k: int, j: int) -> str | None:
    """Return in words how a node's launch differs; null where it doesn't, or where a side can't tell."""
    if base is None or head is None:
        return None
    told = [
        f"{name} {one} to {other}"
        for name, one, other in (("grid", base.grid[k], head.grid[j]), ("block", base.block[k], head.block[j]))
        if one and other and one != other
    ]
    for column, words in _SIZES:
        one, other = getattr(base, column)[k], getattr(head, column)[j]
        if one is not None and other is not None and one != other:
            told.append(f"{one:,} to {other:,} {words}")
    return ", ".join(told) or None
