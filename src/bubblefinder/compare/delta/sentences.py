"""What a suspect is called and what to do about it, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.report.account import REPLAY
from bubblefinder.report.sentences import plain
from bubblefinder.units import signed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.compare.delta.model import Part

_NAME_LENGTH: Final = 80
_ALL: Final = 0.01
"""A part this close to the whole change is all of it: times are told in three digits."""
_PROFILE: Final = "Profile the host there (py-spy, --sample=process-tree), and move the work off the launching thread."
_SENTENCES: Final[Mapping[str, str]] = {
    "same kernel": "{name} takes longer{where}",
    "launch shape": "{name} is launched in another shape{where}{what}",
    "another kernel": "{head} runs in place of {name}{where}",
    "new kernel": "{name} is new{where}",
    "gone kernel": "{name} is gone{where}",
    "overlap lost": "kernels{where} no longer begin before the one before them ends (programmatic dependent launch)",
    "overlap gained": "kernels{where} begin before the one before them ends (programmatic dependent launch)",
    "node gaps": "every node of a replay begins later{where}, whatever it is: the tracer or the driver, not a kernel",
    "replays": "{role} is replayed {base_count} times a step before and {head_count} after",
    "to eager": "{role} is no longer replayed as a graph: its kernels are launched one by one",
    "to graph": "{role} is replayed as a graph now, no longer launched kernel by kernel",
    "gpu speed": "the kernels that both sides have all take longer by one factor: the GPU's clock",
    "collective": "{name}{where} waits longer for another rank",
    "new wait": "the host waits in {name}, which base doesn't",
    "gone wait": "the host no longer waits in {name}",
    "host work": "the host works longer between its calls{place}",
    "exposed": "host work that the GPU hid before is no longer hidden",
    "pause": "the host stops for long in few steps{place}, without a call",
    "new call": "the host sits in {name}, which base never calls",
    "gone call": "the host no longer calls {name}",
    "call": "the host sits longer in {name}",
    "queued": "launched work begins later: front end, a stream's dependency or the copy engine",
    "not told": "idle time that the capture ties to no call",
}
_SHORTER: Final[Mapping[str, str]] = {
    "same kernel": "{name} takes less time{where}",
    "node gaps": "every node of a replay begins sooner{where}, whatever it is: the tracer or the driver, not a kernel",
    "exposed": "host work that the GPU didn't hide before is hidden now",
    "host work": "the host works less between its calls{place}",
    "pause": "the host no longer stops for long in few steps{place}",
    "call": "the host sits in {name} for less time",
    "gpu speed": "the kernels that both sides have all take less time by one factor: the GPU's clock",
    "collective": "{name}{where} waits less for another rank",
    "queued": "launched work begins sooner",
}
_REMEDIES: Final[Mapping[str, str]] = {
    "same kernel": "The kernel and its launch are as they were: compare its inputs, then clocks and memory traffic.",
    "launch shape": "Compare what chooses the launch: the tuning table, block size, occupancy, compiler version.",
    "another kernel": "Find what chooses the kernel: library version, data type, dispatch by shape.",
    "new kernel": "Find what launches it, and fuse it into its neighbours or leave it out.",
    "overlap lost": "Check that the launches still ask for programmatic dependent launch and the kernels still signal.",
    "node gaps": "Compare captures in graph mode, which traces no node: the program itself may take as long as before.",
    "replays": "Compare the speculation settings: draft steps and graphs a step.",
    "to eager": "Find why the graph isn't used: a shape, batch size or feature that was not captured.",
    "gpu speed": "Lock the clocks (nvidia-smi --lock-gpu-clocks) or wait for the GPU to cool, and capture again.",
    "collective": "Look at the rank that comes last.",
    "new wait": "Keep the value on the GPU, or copy it to pinned memory and wait for the step before.",
    "host work": _PROFILE,
    "behind a wait": _PROFILE,
    "exposed": "Let the host run further ahead: fewer waits, launches earlier; see `bubblefinder whatif`.",
    "pause": "Suspect garbage collection (gc.freeze after warm-up) or a thread off its CPU; --trace=osrt shows which.",
    "new call": "Take the call out of the step, or make it once before.",
    "call": "Find what makes the call longer; take it out of the step if it can be.",
    "queued": "Look for a stream that waits for another, and for copies on the same engine.",
    "not told": "Capture again with complete launch records.",
}


def sentence(parts: Sequence[Part], kind: str, total_ns: int, rank: int | None) -> str:
    """Return what a group of parts did to the step, with its share of the whole change.

    Args:
        parts: parts of one cause.
        kind: theirs.
        total_ns: the change of the mean step.
        rank: the only rank that has it; null where all have it.
    """
    delta = sum(part.delta_ns for part in parts)
    first = max((p for p in parts if p.kind == kind), key=lambda part: abs(part.delta_ns), default=parts[0])
    text = _SHORTER.get(kind, _SENTENCES[kind]) if delta < 0 else _SENTENCES[kind]
    roles = list(dict.fromkeys(part.role for part in parts if part.role))
    nodes = sum(part.nodes or 0 for part in parts)
    told = text.format(
        name=_named(first),
        head=plain(first.head_name, _NAME_LENGTH),
        where=(f" in {', '.join(plain(role, 40) for role in roles)}" if roles else "")
        + (f" ({nodes} nodes)" if nodes > 1 else ""),
        what=f": {plain(first.what)}" if first.what else "",
        role=plain(first.role, 40) or "a graph",
        base_count=_count(first.base_count),
        head_count=_count(first.head_count),
        place=f" in {plain(first.name, _NAME_LENGTH)}" if first.name else "",
    )
    on = "" if rank is None else f" on rank {rank}"
    return f"{told}{on}: {parts_of(delta, total_ns)}"


def parts_of(delta_ns: int, total_ns: int) -> str:
    """Return a part of a change and the whole of it; a part can be more than the whole, which other parts offset."""
    if abs(delta_ns - total_ns) <= _ALL * abs(total_ns):
        return f"all of the {signed(total_ns)} a step"
    if delta_ns * total_ns > 0 and abs(delta_ns) < abs(total_ns):
        return f"{signed(delta_ns)} of {signed(total_ns)} a step"
    return f"{signed(delta_ns)} a step, {signed(total_ns)} with what offsets it"


def part_name(part: Part) -> str:
    """Return what a part is, in the words of a table's row."""
    nodes = f"{part.nodes} nodes" if part.nodes and part.nodes > 1 else ""
    swapped = f"{_named(part)} to {plain(part.head_name, _NAME_LENGTH)}" if part.head_name else ""
    own = swapped or (plain(part.name, _NAME_LENGTH) if part.name else "")
    where = f"in {plain(part.role, 40)}" if part.role else ""
    told = [" ".join(word for word in (own, where) if word), nodes, plain(part.what, 200)]
    return f"{part.kind}: {', '.join(word for word in told if word)}".rstrip(": ")


def remedy(parts: Sequence[Part], kind: str) -> str:
    """Return what to do about a group of parts; nothing for what makes a step shorter."""
    longer = sum(part.delta_ns for part in parts) > 0
    return _REMEDIES.get(kind, "") if longer else ""


def _named(part: Part) -> str:
    if part.name == REPLAY:
        return "a replay, whose inside is not in the capture,"
    return plain(part.name, _NAME_LENGTH) or "work without a name"


def _count(number: float | None) -> str:
    return f"{number or 0:.2f}".rstrip("0").rstrip(".")
