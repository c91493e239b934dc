"""Whether a slower host or GPU accounts for a change: then nothing can be said about the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.units import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.compare.delta.model import Speed
    from bubblefinder.compare.model import Change

SAME_HOST: Final = 0.10
"""With one capture a side, hosts whose calls differ by more than this leave a question open that the host decides."""
OTHER_HOST: Final = 0.35
"""With several a side only a host that is another beyond doubt: captures on one machine lie up to 1.32 apart."""
SAME_GPU: Final = 0.01
_GPU: Final = ("busy", "intra_graph")
_Place = tuple[str, "str | int | None"]
_STEP: Final = "step.duration."


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
    told = [words for words in (_host_words(speed, host), _gpu_words(gpu)) if words]
    slower = _longer((speed.base_host_ns, speed.head_host_ns), host)
    table = {(row.metric, row.where.get("rank")): row for row in rows}
    if not told or not all(_explained(row, slower + _longer(_working(row, table), gpu)) for row in moved):
        return None
    return f"{' and '.join(told)}; at one speed the step moves by less than the noise, so the program may be the same."


def slower_machine(speed: Speed | None) -> str:
    """Return in words that host or GPU ran at another speed, where that accounts for part of a change at most."""
    if speed is None:
        return ""
    host = _host_words(speed, _beyond(speed.host, OTHER_HOST))
    told = " and ".join(words for words in (host, _gpu_words(_beyond(speed.gpu, SAME_GPU))) if words)
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


def _times(ratio: float, digits: int = 1) -> str:
    slower = ratio > 1
    return f"{(ratio if slower else 1 / ratio):.{digits}f} times {'slower' if slower else 'faster'}"
