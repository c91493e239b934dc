"""The host's step as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit.table import Table
from bubblefinder.report.sentences import plain
from bubblefinder.units import code_name, count, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bubblefinder.causes.host_record import HostRange
    from bubblefinder.report.host import HostReport

_FEW: Final = 8
_NAME: Final = 60

Row = tuple[str, float | None, float, float, float, float]


def host_tables(host: HostReport, *, verbose: bool) -> Iterator[Table]:
    """Yield the step by phase, by range where there are any, and by call; all of them if `verbose`."""
    most = None if verbose else _FEW
    if host.phases:
        yield _table("from the launch of", "launches", _phases(host))
    if host.ranges:
        yield _table("in range", "a step", _ranges(host.ranges[:most]))
    calls = [
        (
            plain(call.api, _NAME) + (" (waits)" if call.waits else ""),
            count(round(call.per_step_count, 1)),
            milliseconds(call.call_p50_ns),
            milliseconds(call.p50_ns),
        )
        for call in host.calls[:most]
    ]
    yield Table("", ("call", "a step", "one ms", "all ms"), calls, left=frozenset({"call"}))


def _phases(host: HostReport) -> Iterator[Row]:
    for phase in host.phases:
        name = f"{plain(phase.after_role, 30)} to {plain(phase.before_role, 30)}"
        yield (name, phase.launches, phase.p50_ns, phase.waiting_p50_ns, phase.calls_p50_ns, phase.between_p50_ns)


def _ranges(ranges: Iterable[HostRange]) -> Iterator[Row]:
    for item in ranges:
        name = plain(code_name(item.nvtx), _NAME) if item.nvtx else "outside all ranges"
        yield name, item.per_step_count, item.p50_ns, item.waiting_p50_ns, item.calls_p50_ns, item.between_p50_ns


def _table(name: str, number: str, rows: Iterable[Row]) -> Table:
    cells = [
        (title, count(None if times is None else round(times, 1)), *(milliseconds(ns) for ns in parts))
        for title, times, *parts in rows
    ]
    header = (name, number, "p50 ms", "waiting", "in calls", "between")
    return Table("", header, cells, left=frozenset({name}))
