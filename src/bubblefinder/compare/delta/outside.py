"""What changed while the GPU idled between replays: waits, calls, pauses and other host work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.compare.delta.inside import Leaf
from bubblefinder.report.detail.host_account import HOST_WORK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.compare.delta.model import Kind
    from bubblefinder.compare.delta.side import CallKey, Idle, IdleKey, Side

ONCE: Final = 0.5
"""A call came or went if it is made this much more or less often a step; fewer is a call that some steps make."""
RARE: Final = 0.02
"""Or if one side makes it at most in one step of fifty, and the other more than twice as often as that."""
FEW: Final = 0.15
"""Time that half of lies in this share of the steps or less comes in pauses, not in every step."""
HIDDEN: Final = 0.25
"""Where the host took longer for less than this share of what the GPU idles more, its work is exposed, not longer."""
STEADY: Final = 0.25
"""A pause moves the median step by less than this share of what it adds to the mean."""


def changed_idle(base: Side, head: Side) -> Iterator[Leaf]:
    """Yield what became of the idle time outside replays, by what the host did in it; sums to its change."""
    for key in dict.fromkeys([*head.idle, *base.idle]):
        before, after = base.idle.get(key), head.idle.get(key)
        _, wait, during, place, _ = key
        kind = _kind(key, before, after, base, head)
        name = wait if kind in {"new wait", "gone wait"} else place if during == HOST_WORK else during
        what = _what(key, kind)
        counts = _counts(base, head, during) if during and during != HOST_WORK else (None, None)
        times = (before.ns if before else 0.0, after.ns if after else 0.0)
        yield Leaf(kind, None, name, None, what, None, *_known(counts), *times)


def _known(counts: tuple[float | None, float | None]) -> tuple[float, float]:
    return counts[0] or 0.0, counts[1] or 0.0


def _kind(key: IdleKey, before: Idle | None, after: Idle | None, base: Side, head: Side) -> Kind:
    gap_class, wait, during, _, _ = key
    if wait and (came := _came(wait, base, head)):
        return "new wait" if came > 0 else "gone wait"
    if during is None:
        return "queued" if gap_class == "queued" else "not told"
    kind = _of_call(_counts(base, head, during)) if during != HOST_WORK else _of_work(wait, before, after, base, head)
    steady = kind in {"call", "host work", "behind a wait"}
    return "exposed" if steady and _exposed(key, before, after, base, head) else kind


def _of_work(wait: str | None, before: Idle | None, after: Idle | None, base: Side, head: Side) -> Kind:
    if _is_pause(before, after):
        return "pause"
    return "behind a wait" if wait and wait in _waits(base) & _waits(head) else "host work"


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


def _exposed(key: IdleKey, before: Idle | None, after: Idle | None, base: Side, head: Side) -> bool:
    """Tell idle time that grew although the host took no longer for what it did, because the GPU hid it before.

    The other way round likewise: idle time that went because the GPU hides what the host does as before.
    """
    _, _, during, place, _ = key
    more = (after.ns if after else 0.0) - (before.ns if before else 0.0)
    longer = _host_ns(head, during, place) - _host_ns(base, during, place)
    return more != 0 and longer / more < HIDDEN


def _host_ns(side: Side, during: str | None, place: str | None) -> float:
    """Return what the host takes a step for calls of one name, or for its own work in one place, idle GPU or not."""
    return sum(
        call.ns for (api, on, _), call in side.calls.items() if api == during and (api != HOST_WORK or on == place)
    )


def _only_one(before: float, after: float) -> bool:
    """Tell whether a call is made on one side alone, however seldom."""
    return min(before, after) <= RARE and max(before, after) > 2 * min(before, after) and max(before, after) > 0


def _is_pause(before: Idle | None, after: Idle | None) -> bool:
    """Tell time that came, or went, in few steps and left the median step as it was."""
    longer = max((side for side in (before, after) if side), key=lambda side: side.ns)
    mean = (after.ns if after else 0.0) - (before.ns if before else 0.0)
    middle = (after.p50_ns if after else 0.0) - (before.p50_ns if before else 0.0)
    return longer.half <= FEW and abs(middle) < STEADY * abs(mean)


def _what(key: IdleKey, kind: Kind) -> str | None:
    """Return where the idle time lies, in words, beyond what the part is called by."""
    gap_class, wait, during, place, before = key
    told = []
    if kind in {"new wait", "gone wait"} and during:
        told.append(f"in {during}" if during != HOST_WORK else "in host work behind it")
    if during != HOST_WORK and place:
        told.append(f"in {place}")
    if wait and kind not in {"new wait", "gone wait"}:
        told.append(f"behind {wait}")
    if before:
        told.append(f"before {before}")
    if during is None and gap_class != "queued":
        told.append(gap_class)
    return ", ".join(told) or None


def made_more(base: Side, head: Side) -> list[tuple[CallKey, float]]:
    """Return the calls that head makes more or less often a step than base, and by how much."""
    keys = dict.fromkeys([*head.calls, *base.calls])
    counts = [(key, _count(head, key) - _count(base, key)) for key in keys]
    return [(key, more) for key, more in counts if abs(more) >= ONCE]


def _count(side: Side, key: CallKey) -> float:
    return side.calls[key].count if key in side.calls else 0.0
