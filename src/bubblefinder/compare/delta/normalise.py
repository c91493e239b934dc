"""Whether a slower host or GPU accounts for a change: then nothing can be said about the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.compare.delta.tracer import WORTH
from bubblefinder.units import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
_AT_MOST: Final = {f"{_STEP}mean": 1.0, f"{_STEP}p50": 2.0, f"{_STEP}p95": 20.0}
"""How many times what a held-up thread adds to the mean step it can add to each: it is held up in few steps, and by
Markov's inequality what half of the steps exceed is at most twice the mean, what a twentieth exceeds twenty times."""
BY_CHANCE: Final = 2.0
"""What a thread lost is told by the few calls that were hit: six of twelve hold-ups or fewer in 5 % of the cases. So it
may have lost twice as much."""
_SAME: Final = "without that the step moves by less than the noise"


def accounted_for(
    rows: Sequence[Change], speed: Speed | None, *, alone: bool, on_host: bool, left_out: bool
) -> str | None:
    """Return in words that another speed of the host or the GPU accounts for every gated change; null if not.

    What the host itself takes of a step, and the time in kernels, are divided by how much slower that side was. The
    rest of the change is then within the noise, or the other way round, since part of the host's time may be hidden.
    Only the length of a step is judged so: a count doesn't depend on speed.

    Args:
        rows: every metric, judged.
        speed: of head's host and GPU relative to base's.
        alone: whether there is one capture a side, whose spread nobody knows.
        on_host: whether the host has any part in the change.
        left_out: whether nodes that all begin later are left out of the changes already.
    """
    moved = [row for row in rows if row.gated and row.moved]
    if speed is None or not moved or not all(row.metric.startswith(_STEP) for row in moved):
        return None
    gpu = _beyond(speed.gpu, SAME_GPU)
    table = {(row.metric, row.where.get("rank")): row for row in rows}
    waiting = 0.0 if left_out else speed.held_back_ns
    device = [words for words in (_gpu_words(gpu), "" if left_out else _later_words(speed)) if words]
    for pace, held, words in _slower_hosts(speed, alone=alone, on_host=on_host):
        told = [*words, *device]
        rows = _without_tails(moved) if words and alone else moved
        if told and all(
            _explained(row, waiting + _by_host(row, table, speed, (pace, held)) + _longer(_working(row, table), gpu))
            for row in rows
        ):
            return f"{' and '.join(told)}; {_SAME}"
    return None


def _without_tails(moved: Sequence[Change]) -> list[Change]:
    """Return what moved without the tails of ranks whose mean did: two captures of hosts that differ don't settle it.

    Stalls that are no chance are in the mean, which is held to the least there is.
    """
    means = [row.where.get("rank") for row in moved if row.metric == f"{_STEP}mean"]
    return [row for row in moved if row.metric != f"{_STEP}p95" or row.where.get("rank") not in means]


def _by_host(
    row: Change, table: Mapping[_Place, Change], speed: Speed, slower: tuple[float | None, float | None]
) -> float:
    """Return what a step is longer by on head because its host was slower, in the statistic of a row.

    A slower pace takes its part of every step, of long ones more; a thread is held up in few of them.
    """
    pace, held = slower
    hosts = speed.base_host_ns, speed.head_host_ns
    mean = table.get((f"{_STEP}mean", row.where.get("rank")), row)
    sizes = [_over(row.base.value, mean.base.value), _over(row.head.value, mean.head.value)]
    paced = _longer((hosts[0] * sizes[0], hosts[1] * sizes[1]), pace)
    if held is None:
        return paced
    return paced + _AT_MOST[row.metric] * (_longer(hosts, (pace or 1.0) * held) - _longer(hosts, pace))


def _over(value: float | None, mean: float | None) -> float:
    return value / mean if value and mean else 1.0


def _slower_hosts(
    speed: Speed, *, alone: bool, on_host: bool
) -> Iterator[tuple[float | None, float | None, list[str]]]:
    """Yield by what the host may have been slower, and in words: nothing, its pace, a thread held up, or both."""
    pace = _beyond(speed.host, SAME_HOST if alone else OTHER_HOST)
    held = _at_most(_beyond(speed.head_held / speed.base_held, SAME_HOST)) if alone and on_host else None
    yield None, None, []
    if pace:
        yield pace, None, [_host_words(speed, pace)]
    if held:
        yield None, held, [_held_words(speed)]
    if pace and held and (pace > 1) == (held > 1):
        yield pace, held, [_host_words(speed, pace), _held_words(speed)]


def _at_most(held: float | None) -> float | None:
    """Return for how much longer a thread may have taken that was held up so much by what its calls tell."""
    if held is None:
        return None
    return 1 + BY_CHANCE * (held - 1) if held > 1 else 1 / (1 + BY_CHANCE * (1 / held - 1))


def paced_ns(speed: Speed | None) -> float:
    """Return what a step of head is longer by if all its host does took as much longer as the calls that both make."""
    return _longer((speed.base_host_ns, speed.head_host_ns), speed.host) if speed else 0.0


def left_out(rows: Sequence[Change], speed: Speed | None) -> list[str]:
    """Return in words what of the step is the tracer's, where that is worth a word."""
    mean = next((row for row in rows if row.metric == "step.duration.mean"), None)
    if mean is None or speed is None or abs(mean.tracer) <= WORTH * (mean.base.value or 0.0):
        return []
    more = f"{'+' if mean.tracer > 0 else '-'}{duration(abs(mean.tracer))}"
    return [f"{_begins(speed)}: the tracer's doing, {more} a step, and left out. Captures in graph mode trace no node."]


def slower_machine(speed: Speed | None, delta_ns: float, *, on_host: bool) -> str:
    """Return in words that host or GPU ran at another speed, where that accounts for part of a change at most.

    Only what moved the mean step the way it moved is told, and of the host only where it has a part in that.
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
    own = row.delta - row.tracer
    left = own - slower_ns
    return abs(left) <= row.threshold or left * own < 0


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


def _held_words(speed: Speed) -> str:
    """Say on which side the launching thread was held up: what shares its core hits the longer calls, rarely the short.

    Medians of calls don't show it, their sums do: a thread off its core takes longer at everything.
    """
    sides = ("head", speed.head_held, speed.base_held), ("base", speed.base_held, speed.head_held)
    side, longer, other = max(sides, key=lambda told: told[1])
    return (
        f"the thread that launches was held up in {side} (a neighbour on its core, or another thread): its calls take "
        f"{longer:.1f} times as long as their medians, against {other:.1f} times"
    )


def _gpu_words(ratio: float | None) -> str:
    return f"the GPU was {_times(ratio, 3)} in head on the kernels that both run" if ratio else ""


def _later_words(speed: Speed) -> str:
    if not speed.later_ns:
        return ""
    told = _begins(speed)
    return f"{told[:1].lower()}{told[1:]} (the tracer or the driver)"


def _begins(speed: Speed) -> str:
    when = f"{duration(abs(speed.later_ns))} {'later' if speed.later_ns > 0 else 'sooner'}"
    return f"Every node of a replay began {when} in head, whatever it is"


def _times(ratio: float, digits: int = 1) -> str:
    slower = ratio > 1
    return f"{(ratio if slower else 1 / ratio):.{digits}f} times {'slower' if slower else 'faster'}"
