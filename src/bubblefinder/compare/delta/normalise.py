"""Whether a slower host or GPU accounts for a change: then nothing can be said about the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.units import duration, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.compare.delta.model import Speed
    from bubblefinder.compare.model import Change

SAME_HOST: Final = 0.10
"""With one capture a side, hosts whose calls differ by more than this leave a question open that the host decides."""
OTHER_HOST: Final = 0.35
"""With several a side only a host that is another beyond doubt: captures on one machine lie up to 1.32 apart."""
SAME_GPU: Final = 0.01
HELD: Final = 1.5
"""32 captures of loops alone on their host lie at 0.9 to 1.25, two beside a busy process a core at 1.9 and 2.1."""
_GPU: Final = ("busy", "intra_graph")
_Place = tuple[str, "str | int | None"]
_STEP: Final = "step.duration."
_SAME: Final = "without that the step moves by less than the noise"


def accounted_for(rows: Sequence[Change], speed: Speed | None, *, alone: bool) -> str | None:
    """Return in words that another speed of the host or the GPU accounts for every gated change; null if not.

    What the host itself takes of a step, and the time in kernels, are divided by how much slower that side was. The
    rest of the change is then within the noise, or the other way round, since part of the host's time may be hidden.
    Only the length of a step is judged so: a count doesn't depend on speed.

    Args:
        rows: every metric, judged.
        speed: of head's host and GPU relative to base's.
        alone: whether there is one capture a side, whose spread nobody knows.
    """
    moved = [row for row in rows if row.gated and row.status in {"better", "worse"}]
    if speed is None or not moved or not all(row.metric.startswith(_STEP) for row in moved):
        return None
    host, gpu = _beyond(speed.host, SAME_HOST if alone else OTHER_HOST), _beyond(speed.gpu, SAME_GPU)
    table = {(row.metric, row.where.get("rank")): row for row in rows}
    device = [words for words in (_gpu_words(gpu), _later_words(speed)) if words]
    waiting = speed.later_ns * speed.replayed
    hosts = _longer((speed.base_host_ns, speed.head_host_ns), host)
    for told, slower in ((device, 0.0), ([_host_words(speed, host), *device] if host else [], hosts)):
        if told and all(_explained(row, slower + waiting + _longer(_working(row, table), gpu)) for row in moved):
            return f"{' and '.join(told)}; {_SAME}"
    return None


def held_up(speed: Speed, delta_ns: float) -> str | None:
    """Return in words that the launching thread was held up on the side where the step is longer; null if not.

    One capture a side can't tell then what the host itself does longer: a thread that has to share its core takes
    longer at everything, its shortest calls are rarely hit, and it is the longer ones that show it.
    """
    longer, other = speed.head_held, speed.base_held
    side = "head"
    if delta_ns < 0:
        longer, other, side = other, longer, "base"
    if longer / other < HELD:
        return None
    return (
        f"the thread that launches was held up in {side}: its calls take {longer:.1f} times as long as their medians, "
        f"and {other:.1f} times on the other side (a neighbour on its core, or another thread)"
    )


def slower_machine(speed: Speed | None, delta_ns: float, *, on_host: bool) -> str:
    """Return in words that host or GPU ran at another speed, where that accounts for part of a change at most.

    Args:
        speed: theirs.
        delta_ns: the change of the mean step; only what moved it that way is told.
        on_host: whether the host has any part in it.
    """
    if speed is None:
        return ""
    ratios = _beyond(speed.host, OTHER_HOST) if on_host else None, _beyond(speed.gpu, SAME_GPU)
    host, gpu = (ratio if ratio and (ratio > 1) == (delta_ns > 0) else None for ratio in ratios)
    told = " and ".join(words for words in (_host_words(speed, host), _gpu_words(gpu)) if words)
    return f"{told[:1].upper()}{told[1:]}: part of the change may be that." if told else ""


def _beyond(ratio: float | None, same: float) -> float | None:
    """Return a ratio that tells another speed, else null."""
    return ratio if ratio is not None and max(ratio, 1 / ratio) > 1 + same else None


def _explained(row: Change, slower_ns: float) -> bool:
    if row.delta is None or row.threshold is None:
        return False
    left = row.delta - slower_ns
    return abs(left) <= row.threshold or left * row.delta < 0


def _longer(sides: tuple[float, float], ratio: float | None) -> float:
    """Return what a time of base and head is longer by on head because that was slower; negative if base was."""
    if ratio is None:
        return 0.0
    return sides[1] * (1 - 1 / ratio) if ratio > 1 else -sides[0] * (1 - ratio)


def _working(row: Change, table: Mapping[_Place, Change]) -> tuple[float, float]:
    """Return the time inside replays and in other work, in the same statistic as a change of the step."""
    statistic = row.metric.removeprefix(_STEP)
    parts = [table.get((f"step.{name}.{statistic}", row.where.get("rank"))) for name in _GPU]
    known = [part for part in parts if part]
    return sum(part.base.value or 0.0 for part in known), sum(part.head.value or 0.0 for part in known)


def _host_words(speed: Speed, ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"the host was {_times(ratio)} in head on the {plural(speed.calls, 'kind')} of calls that both make"


def _gpu_words(ratio: float | None) -> str:
    return f"the GPU was {_times(ratio, 3)} in head on the kernels that both run" if ratio else ""


def _later_words(speed: Speed) -> str:
    if not speed.later_ns:
        return ""
    when = f"{duration(abs(speed.later_ns))} {'later' if speed.later_ns > 0 else 'sooner'}"
    return f"every node of a replay began {when} in head, whatever it is (the tracer or the driver)"


def _times(ratio: float, digits: int = 1) -> str:
    slower = ratio > 1
    return f"{(ratio if slower else 1 / ratio):.{digits}f} times {'slower' if slower else 'faster'}"
