"""The first suspect: the one thing that explains most of a change, how sure that is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.delta.model import Delta, Part, Speed, Suspect
from bubblefinder.compare.delta.sentences import parts_of, remedy, sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bubblefinder.report.found import Confidence

WARM_UP: Final = "warm-up"
SAME_SPEED: Final = 0.01
"""Kernels of GPUs at one clock agree within this; see the null captures of docs/diff.md."""
MOST: Final = 0.7
HALF: Final = 0.5
MOST_SUSPECTS: Final = 3
WORTH: Final = 0.1
"""Further suspects explain at least this share of the change."""
STRUCTURAL: Final = frozenset({
    "launch shape", "another kernel", "new kernel", "gone kernel", "overlap lost", "overlap gained", "replays",
    "to eager", "to graph", "new wait", "gone wait", "new call", "gone call",
})  # fmt: skip
"""Changes that are there in every step or in none: no noise between captures makes them."""
_ON_GPU: Final = frozenset({
    "launch shape", "same kernel", "another kernel", "new kernel", "gone kernel", "overlap lost", "overlap gained",
    "node gaps", "replays", "gpu speed",
})  # fmt: skip
_BY_NAME: Final = frozenset({
    "launch shape", "same kernel", "new kernel", "gone kernel", "new wait", "gone wait", "new call", "gone call",
    "call", "pause", "collective",
})  # fmt: skip
_BY_ROLE: Final = frozenset({"replays", "to eager", "to graph"})
_HOST: Final = frozenset({"host work", "behind a wait"})
_BETWEEN_LAUNCHES: Final = frozenset(
    {"host work", "behind a wait", "exposed", "call", "new call", "gone call", "queued"}
)
_SYMPTOMS: Final = frozenset({"queued", "not told", "collective", "exposed", "node gaps"})

_EXPOSES: Final = (
    frozenset({"new wait"}),
    frozenset({"to eager"}),
    frozenset({"new call", "call", "pause", "host work", "behind a wait"}),
)
"""What may expose host work, in the order in which it is believed."""
_HIDES: Final = (
    frozenset({"gone wait"}),
    frozenset({"to graph"}),
    frozenset({"gone call", "call", "pause", "host work", "behind a wait"}),
)
"""What may hide it again."""

_Key = tuple[str, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of one rank that have one cause."""

    rank: int
    key: _Key
    parts: tuple[Part, ...]

    @property
    def delta_ns(self) -> int:
        """What they add to the mean step."""
        return sum(part.delta_ns for part in self.parts)


def suspects(deltas: Sequence[Delta], speed: Speed, warming_ns: float = 0.0) -> list[Suspect]:
    """Return what explains the change of the step, most first; nothing where no step changed.

    With several ranks a collective's time is waiting for the slowest: its cause is looked for on every rank.

    Args:
        deltas: one a rank.
        speed: of the first rank's host and GPU; a GPU of another speed explains all its kernels at once.
        warming_ns: what the first steps of head, beyond base's, add to its mean by being longer than the others.
    """
    longest = max(deltas, key=lambda delta: abs(delta.delta_ns), default=None)
    if longest is None or not longest.delta_ns:
        return []
    total = longest.delta_ns
    if warming_ns / total >= HALF:
        return [_warming(round(warming_ns), total)]
    groups = [g for d in deltas for g in _groups(d, same_speed=_same_speed(speed)) if g.delta_ns * total > 0]
    ordered = sorted(groups, key=lambda group: _precedence(group, total))
    if not any(group.key[0] not in _SYMPTOMS and group.delta_ns / total >= WORTH for group in ordered):
        ordered.sort(key=lambda group: -abs(group.delta_ns))
    return list(_told(ordered, total, len(deltas)))


def offsetting(deltas: Sequence[Delta], speed: Speed, line_ns: float) -> list[str]:
    """Return in words what of the program changed by more than a line, though the step did not, the longest first.

    Only what is there in every step or in none, and the GPU's own time: the host's scatters.
    """
    groups = {g.key: g for d in deltas[::-1] for g in _groups(d, same_speed=_same_speed(speed)) if _own(g, line_ns)}
    ordered = sorted(groups.values(), key=lambda group: -abs(group.delta_ns))[:MOST_SUSPECTS]
    totals = {delta.rank: delta.delta_ns for delta in deltas}
    return [sentence(group.parts, group.key[0], totals[group.rank], None) for group in ordered]


def _own(group: Group, line_ns: float) -> bool:
    kind = group.key[0]
    return abs(group.delta_ns) > line_ns and kind in STRUCTURAL | _ON_GPU and kind not in {*_SYMPTOMS, "gpu speed"}


def _same_speed(speed: Speed) -> bool:
    return speed.gpu is None or abs(speed.gpu - 1) <= SAME_SPEED


def on_host(found: Sequence[Suspect]) -> bool:
    """Tell whether the host has a part in what explains a change; unknown is yes."""
    return not found or any(one.kind not in _ON_GPU for one in found)


def _precedence(group: Group, total: int) -> tuple[bool, bool, int, int]:
    """Order what explains a change by its time; what explains half of it beyond doubt goes before what may scatter."""
    kind = group.key[0]
    return kind in _SYMPTOMS, kind not in STRUCTURAL or group.delta_ns / total < HALF, -abs(group.delta_ns), group.rank


def _told(ordered: Sequence[Group], total: int, ranks: int) -> Iterable[Suspect]:
    seen = set[_Key]()
    for group in ordered:
        if group.key in seen or len(seen) == MOST_SUSPECTS or (seen and group.delta_ns / total < WORTH):
            continue
        seen.add(group.key)
        alone = ranks > 1 and not any(
            other.key == group.key and other.rank != group.rank and 2 * abs(other.delta_ns) >= abs(group.delta_ns)
            for other in ordered
        )
        yield Suspect(
            kind=group.key[0],
            name=group.key[1],
            rank=group.rank,
            delta_ns=group.delta_ns,
            share=min(group.delta_ns / total, 1.0),
            confidence=_confidence(group, group.delta_ns / total),
            sentence=sentence(group.parts, group.key[0], total, group.rank if alone else None),
            remedy=remedy(group.parts, group.key[0]),
        )


def _warming(warming_ns: int, total: int) -> Suspect:
    return Suspect(
        kind=WARM_UP,
        name=None,
        rank=0,
        delta_ns=warming_ns,
        share=min(warming_ns / total, 1.0),
        confidence="high" if warming_ns / total >= MOST else "medium",
        sentence=(
            f"the first steps of {'head' if total > 0 else 'base'}'s capture are longer than the rest of it: "
            f"{parts_of(warming_ns, total)}"
        ),
        remedy="Warm up before the capture begins, until steps are steady; then compare again.",
    )


def _groups(delta: Delta, *, same_speed: bool) -> list[Group]:
    found: dict[_Key, list[Part]] = {}
    for part in delta.parts:
        key = _key(part, delta.parts) if same_speed or part.kind != "same kernel" else ("gpu speed", None, None)
        found.setdefault(key, []).append(part)
    return [Group(delta.rank, key, tuple(parts)) for key, parts in found.items()]


def _key(part: Part, parts: Sequence[Part]) -> _Key:
    """Return what parts of one cause share."""
    if part.kind in _BETWEEN_LAUNCHES and "before kernel" in (part.what or ""):
        fallen = [other for other in parts if other.kind in {"to eager", "to graph"}]
        if fallen:
            longest = max(fallen, key=lambda other: max(other.base_ns, other.head_ns))
            return longest.kind, longest.role, None
    if part.kind == "exposed":
        return _exposed_by(part, parts)
    if part.kind in _BY_ROLE:
        return part.kind, part.role, None
    if part.kind == "another kernel":
        return part.kind, part.name, part.head_name
    if part.kind in _HOST:
        return "host work", part.name, None
    return part.kind, part.name if part.kind in _BY_NAME else None, None


def _exposed_by(part: Part, parts: Sequence[Part]) -> _Key:
    """Return what keeps the host from running ahead, so that its work shows: a wait, single launches, longer work."""
    longer = part.delta_ns > 0
    for kinds in _EXPOSES if longer else _HIDES:
        found = [p for p in parts if p.kind in kinds and ((p.delta_ns > 0) == longer or p.kind in _BY_ROLE)]
        if found:
            return _key(max(found, key=lambda p: abs(p.delta_ns)), parts)
    return "exposed", None, None


def _confidence(group: Group, share: float) -> Confidence:
    if share >= MOST and group.key[0] in STRUCTURAL:
        return "high"
    return "medium" if share >= HALF else "low"
