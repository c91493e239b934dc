"""The floor under the step and a benchmark's runs, as lines and tables for every format of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit.sheet import Section
from bubblefinder.render.kit.table import Table
from bubblefinder.report.sentences import plain
from bubblefinder.units import UNKNOWN, count, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.report.economics import EconomicsReport, FloorReport, ServedReport
    from bubblefinder.report.model import Report

HEADING: Final = "Floor and speculation"
_GB: Final = 1e9


def sections(report: Report) -> Iterator[Section]:
    """Yield the floor and the benchmark, where they were asked for."""
    if report.economics is not None:
        yield Section("economics", HEADING, tuple(_sentences(report.economics)), tuple(_tables(report.economics)))


def _sentences(economics: EconomicsReport) -> Iterator[str]:
    """Yield what there is to say, the verdict on the floor first."""
    floor = economics.floor
    if floor:
        yield _floor_sentence(floor)
        for role in floor.impossible:
            why = "another model ran, or its tokens chose fewer different experts"
            yield f"{role} took less time than its floor: {why}."
    for one in economics.served:
        yield from (f"{_named(one)}: {plain(note, 600)}." for note in one.notes)


def _tables(economics: EconomicsReport) -> Iterator[Table]:
    """Yield the floor by role, the step from the floor up, and the runs."""
    if economics.floor:
        yield _roles(economics.floor)
        if economics.floor.waterfall_ns:
            yield _waterfall(economics.floor, economics.floor.waterfall_ns)
    if economics.served:
        yield _runs(economics.served)


def _floor_sentence(floor: FloorReport) -> str:
    rate = f"{floor.bandwidth / _GB:,.0f} GB/s"
    moved = f"A step of {plain(floor.model, 80)} moves at least {floor.bytes / _GB:.3f} GB: {duration(floor.floor_ns)}"
    of_step = f", {share(floor.achieved_share)} of the mean step" if floor.achieved_share is not None else ""
    return f"{moved} at {rate}{of_step}. Bytes are counted from the model's shape; no counter was read."


def _roles(floor: FloorReport) -> Table:
    rows = [
        (
            role.role,
            f"{role.bytes / _GB:.3f}",
            duration(role.floor_ns),
            duration(role.length_ns),
            share(role.achieved_share),
            UNKNOWN if role.effective_bandwidth is None else f"{role.effective_bandwidth / _GB:,.0f} GB/s",
        )
        for role in floor.roles
    ]
    return Table("Floor", ("role", "GB", "floor", "takes", "achieved", "effective"), rows, left=frozenset({"role"}))


def _waterfall(floor: FloorReport, parts: dict[str, int | None]) -> Table:
    names = {"floor": "floor", "above_floor": "busy above the floor", "intra_graph": "idle inside graphs"}
    rows = [
        (names.get(name, name.replace("_", " ")), duration(value), share(value / floor.step_ns))
        for name, value in parts.items()
        if value and floor.step_ns
    ]
    return Table("From the floor up", ("part", "mean", "share"), rows, left=frozenset({"part"}))


def _runs(runs: list[ServedReport]) -> Table:
    rows = [
        (
            _named(one),
            duration(one.tpot_ns),
            UNKNOWN if one.accept_length is None else f"{one.accept_length:.2f}",
            duration(one.step_ns),
            duration(one.captured_ns),
            UNKNOWN if one.off is None else f"{100 * one.off:+.1f} %",
            share(one.bubble_share_of_tpot),
        )
        for one in runs
    ]
    header = ("benchmark", "TPOT", "accept", "step by it", "captured", "off", "bubble of TPOT")
    return Table("Benchmark", header, rows, left=frozenset({"benchmark"}))


def _named(one: ServedReport) -> str:
    at = f" at {count(one.concurrency)}" if one.concurrency else ""
    return f"{plain(one.scenario, 60) or one.engine}{at}"
