"""What holds the launching thread: its waits in a row and where its step goes, as lines and tables for every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit.sheet import Section, Table
from bubblefinder.report.prediction_sentences import in_cell, in_words
from bubblefinder.report.sentences import bound_words, plain
from bubblefinder.units import UNKNOWN, code_name, count, duration, milliseconds, share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bubblefinder.causes.host_record import HostRange
    from bubblefinder.report.found import Predicted, WaitChainReport
    from bubblefinder.report.host import HostReport
    from bubblefinder.report.model import Report

_FEW: Final = 8
_NAME: Final = 60

Row = tuple[str, float | None, float, float, float, float]


def sections(report: Report, *, verbose: bool = False) -> Iterator[Section]:
    """Yield the waits that hold the host one after the other, and its step where the GPU idles for it or `verbose`."""
    mine = (chain for chain in report.wait_chains if (chain.gpu, chain.pid) == (report.steps.gpu, report.steps.pid))
    yield from (_waits(chain) for chain in mine)
    host = report.host
    if host is not None and (host.shorten or verbose):
        tables = tuple(host_tables(host, verbose=verbose))
        yield Section("host", "Where the launching thread's step goes", (_host_sentence(host),), tables)


def _waits(chain: WaitChainReport) -> Section:
    rows = [
        (
            f"{place}. {plain(link.title, 110)}" + (f" [{link.rule}]" if link.rule else ""),
            in_cell(link.recoverable_ns, link.recoverable_range_ns) or UNKNOWN,
            in_cell(link.in_turn_ns, link.in_turn_range_ns) or UNKNOWN,
            _shares(link.in_turn_ns, link.in_turn_range_ns, chain.step_ns),
        )
        for place, link in enumerate(chain.links, start=1)
    ]
    whole = chain.joint.recoverable_ns, chain.joint.recoverable_range_ns
    rows.append(("all of them together", "", in_cell(*whole) or UNKNOWN, _shares(*whole, chain.step_ns)))
    header = ("wait", "alone", "in its turn", "of the step")
    half = f"with half the host's own work instead {_then(chain.half_work)}"
    said = (
        "Without one alone the next holds the host; in its turn is what each gives when those above it are gone too.",
        f"Without all of them a step takes {_then(chain.joint)}; {half}; with both {_then(chain.both)}.",
        *_untraced(chain),
    )
    heading = f"Waits that hold the launching thread one after the other in a step of {duration(chain.step_ns)}"
    return Section("waits", heading, said, (Table("", header, rows),))


def _shares(ns: int | None, ends: list[int] | None, step_ns: int) -> str:
    if ns is None:
        return f"{share(ends[0] / step_ns)} to {share(ends[1] / step_ns)}" if ends else UNKNOWN
    return share(ns / step_ns)


def _untraced(chain: WaitChainReport) -> Iterator[str]:
    if chain.untraced_range_ns:
        ends = " and ".join(duration(end) for end in chain.untraced_range_ns)
        yield f"With neither the waits nor the profiler, which slows a host down, it lies between {ends}."


def _then(change: Predicted) -> str:
    after = bound_words(change.bound_after)
    return f"{in_words(change.step_after_ns, change.range_ns)}{after and f', bound by the {after}'}"


def _host_sentence(host: HostReport) -> str:
    named = f" of {plain(host.thread, 40)}" if host.thread else ""
    parts = f"{duration(host.calls_p50_ns)} in CUDA calls, {duration(host.between_p50_ns)} between them"
    return (
        f"The step{named}: {duration(host.step_p50_ns)}; {parts}, {duration(host.waiting_p50_ns)} waiting for the GPU."
    )


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
    yield Table("", ("call", "a step", "one ms", "all ms"), calls)


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
    return Table("", header, cells)
