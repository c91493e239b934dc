"""What changed while the GPU idled between replays: waits, calls, pauses and other host work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from bubblefinder.compare.delta.inside import Leaf
from bubblefinder.compare.delta.side import Idle, Side
from bubblefinder.compare.delta.speed import host_pace
from bubblefinder.report.account import HOST_WORK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bubblefinder.compare.delta.model import Kind

_Activity = tuple[str, "str | None", "str | None", "str | None"]
"""The class of idle time, what the host did in it, where, and what ended it."""
_Work = tuple["str | None", "str | None", bool]
_OF_WAITS: Final = frozenset({"new wait", "gone wait"})

ONCE: Final = 0.5
"""A call came or went if it is made this much more or less often a step; fewer is a call that some steps make."""
RARE: Final = 0.02
"""Or if one side makes it at most in one step of fifty, and the other more than twice as often as that."""
FEW: Final = 0.15
"""Time that half of lies in this share of the steps or less comes in pauses, not in every step."""
HIDDEN: Final = 0.25
"""Where the host took longer for less than this share of what the GPU idles more, its work is exposed, not longer."""
ALONE: Final = 0.75
"""From this share on the host's own work accounts for the change by itself, though a wait came or went beside it."""
STEADY: Final = 0.25
"""A pause moves the median step by less than this share of what it adds to the mean."""


class _Change(NamedTuple):
    """Idle time of one kind on both sides, and the wait that it hangs on, if on any."""

    key: _Activity
    wait: str | None
    before: Idle
    after: Idle

    @property
    def delta_ns(self) -> float:
        """What it adds to the mean step."""
        return self.after.ns - self.before.ns

    @property
    def work(self) -> _Work:
        """What the host did, where, and whether the GPU idles more."""
        return self.key[1], self.key[2], self.delta_ns > 0


def changed_idle(base: Side, head: Side) -> Iterator[Leaf]:
    """Yield what became of the idle time outside replays, by what the host did in it; sums to its change."""
    pace = host_pace(base, head) or 1.0
    changes = list(_changes(base, head))
    sums = _sums(changes)
    for change in changes:
        _, during, place, _ = change.key
        kind = _kind(change, base, head, pace, sums[change.work])
        name = change.wait if kind in _OF_WAITS else place if during == HOST_WORK else during
        counts = _counts(base, head, during) if during and during != HOST_WORK else (0.0, 0.0)
        yield Leaf(kind, None, name, None, _what(change, kind), None, *counts, change.before.ns, change.after.ns)


def _sums(changes: Iterable[_Change]) -> dict[_Work, float]:
    """Return what the GPU idles more, and apart from it less, by what the host did, whatever ended the idle time."""
    sums: dict[_Work, float] = {}
    for change in changes:
        sums[change.work] = sums.get(change.work, 0.0) + change.delta_ns
    return sums


def _changes(base: Side, head: Side) -> Iterator[_Change]:
    """Pair the idle time of both sides by what the host did in it.

    Where it hangs on other waits than before, what is there on both sides is the same idle time under another cause:
    only the difference counts, and hangs on the wait that came or went.
    """
    before, after = _by_activity(base), _by_activity(head)
    for key in dict.fromkeys([*after, *before]):
        old, new = before.get(key, {}), after.get(key, {})
        if old.keys() == new.keys():
            for wait in old:
                yield _Change(key, wait, old[wait], new[wait])
        else:
            net = _Change(key, None, _together(old), _together(new))
            yield net._replace(wait=_responsible(net.delta_ns, old, new, base, head))


def _by_activity(side: Side) -> dict[_Activity, dict[str | None, Idle]]:
    found: dict[_Activity, dict[str | None, Idle]] = {}
    for (gap_class, wait, during, place, before), idle in side.idle.items():
        found.setdefault((gap_class, during, place, before), {})[wait] = idle
    return found


def _together(rows: Mapping[str | None, Idle]) -> Idle:
    """Return idle time of several waits as one; its shape is that of the largest part."""
    largest = max(rows.values(), key=lambda idle: idle.ns, default=Idle())
    return Idle(sum(idle.ns for idle in rows.values()), sum(idle.p50_ns for idle in rows.values()), largest.half)


def _responsible(
    delta: float, old: Mapping[str | None, Idle], new: Mapping[str | None, Idle], base: Side, head: Side
) -> str | None:
    """Return the wait that a change hangs on: one that came with more idle time or went with it, else the largest."""
    side, came = (new, 1) if delta > 0 else (old, -1)
    waits = sorted((wait for wait in side if wait), key=lambda wait: -side[wait].ns)
    return next((wait for wait in waits if _came(wait, base, head) == came), waits[0] if waits else None)


def _kind(change: _Change, base: Side, head: Side, pace: float, whole_ns: float) -> Kind:
    gap_class, during, _, _ = change.key
    came = _came(change.wait, base, head) if change.wait else 0
    if came * change.delta_ns > 0 and not _host_alone(change, base, head, pace, whole_ns):
        return "new wait" if came > 0 else "gone wait"
    if during is None:
        return "queued" if gap_class == "queued" else "not told"
    kind = _of_call(_counts(base, head, during)) if during != HOST_WORK else _of_work(change, base, head)
    steady = kind in {"call", "host work", "behind a wait"}
    return "exposed" if steady and _longer(change, base, head, pace) < HIDDEN else kind


def _host_alone(change: _Change, base: Side, head: Side, pace: float, whole_ns: float) -> bool:
    """Tell a change for which the host took longer, or shorter, by as much at what it did before as well.

    What it took longer accounts for idle time once, so all that has its work in it is held against that.
    """
    _, during, place, _ = change.key
    least = min(_host_ns(side, during, place) for side in (base, head))
    share = change.delta_ns / whole_ns
    return during == HOST_WORK and least > 0 and share * _longer(change, base, head, pace) >= ALONE


def _of_work(change: _Change, base: Side, head: Side) -> Kind:
    if _is_pause(change.before, change.after):
        return "pause"
    return "behind a wait" if change.wait in _waits(base) & _waits(head) else "host work"


def _waits(side: Side) -> set[str]:
    return {key[1] for key in side.idle if key[1]}


def _came(wait: str, base: Side, head: Side) -> int:
    """Return 1 for a wait that only head makes, -1 for one that only base makes, else 0.

    One that is charged with idle time on one side alone, but called on both, neither came nor went.
    """
    if (wait in _waits(base)) == (wait in _waits(head)):
        return 0
    api = wait.split(" ", 1)[0]
    more = _waiting(head, api) - _waiting(base, api)
    if abs(more) < ONCE and not _only_one(_waiting(base, api), _waiting(head, api)):
        return 0
    return 1 if more > 0 and wait in _waits(head) else -1 if more < 0 and wait in _waits(base) else 0


def _waiting(side: Side, api: str) -> float:
    return sum(call.count for (name, _, waits), call in side.calls.items() if name == api and waits)


def _counts(base: Side, head: Side, api: str) -> tuple[float, float]:
    before, after = (sum(c.count for key, c in side.calls.items() if key[0] == api) for side in (base, head))
    return before, after


def _of_call(counts: tuple[float, float]) -> Kind:
    if _only_one(*counts):
        return "new call" if counts[1] > counts[0] else "gone call"
    return "call"


def _longer(change: _Change, base: Side, head: Side, pace: float) -> float:
    """Return by how much longer the host took for what it did, as a share of what the GPU idles more.

    Near 0 its work is not longer, the GPU hid it before; and the other way round where idle time went. A host that is
    slower at everything does no more: of its times as they are and at base's pace, those count that say less.
    """
    _, during, place, _ = change.key
    before, after = _host_ns(base, during, place), _host_ns(head, during, place)
    if not change.delta_ns:
        return 1.0
    return min((after - before) / change.delta_ns, (after / pace - before) / change.delta_ns)


def _host_ns(side: Side, during: str | None, place: str | None) -> float:
    """Return what the host takes a step for calls of one name, or for its own work in one place, idle GPU or not."""
    return sum(
        call.ns for (api, on, _), call in side.calls.items() if api == during and (api != HOST_WORK or on == place)
    )


def _only_one(before: float, after: float) -> bool:
    """Tell whether a call is made on one side alone, however seldom."""
    return min(before, after) <= RARE and max(before, after) > 2 * min(before, after) and max(before, after) > 0


def _is_pause(before: Idle, after: Idle) -> bool:
    """Tell time that came, or went, in few steps and left the median step as it was."""
    longer = max((before, after), key=lambda side: side.ns)
    return longer.half <= FEW and abs(after.p50_ns - before.p50_ns) < STEADY * abs(after.ns - before.ns)


def _what(change: _Change, kind: Kind) -> str | None:
    """Return where the idle time lies, in words, beyond what the part is called by."""
    gap_class, during, place, before = change.key
    told = []
    if kind in _OF_WAITS and during:
        told.append(f"in {during}" if during != HOST_WORK else "in host work behind it")
    if during != HOST_WORK and place:
        told.append(f"in {place}")
    if change.wait and kind not in _OF_WAITS:
        told.append(f"behind {change.wait}")
    if before:
        told.append(f"before {before}")
    if during is None and gap_class != "queued":
        told.append(gap_class)
    return ", ".join(told) or None
