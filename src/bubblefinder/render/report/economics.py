"""The floor under the step and a benchmark's runs, as lines and tables for every format of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.render import floor
from bubblefinder.render.kit.sheet import Section, Table
from bubblefinder.report.sentences import plain
from bubblefinder.units import UNKNOWN, count, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.report.economics import EconomicsReport, ServedReport
    from bubblefinder.report.model import Report

HEADING: Final = "Floor and speculation"


def sections(report: Report) -> Iterator[Section]:
    """Yield the floor and the benchmark, where they were asked for."""
    if report.economics is not None:
        yield Section("economics", HEADING, tuple(_sentences(report.economics)), tuple(_tables(report.economics)))


def _sentences(economics: EconomicsReport) -> Iterator[str]:
    """Yield what there is to say, the verdict on the floor first."""
    if economics.floor:
        yield f"{floor.headline(economics.floor)} Bytes are counted from the model's shape; no counter was read."
        yield from (f"{said}." for said in floor.impossible(economics.floor))
    for one in economics.served:
        yield from (f"{_named(one)}: {plain(note, 600)}." for note in one.notes)


def _tables(economics: EconomicsReport) -> Iterator[Table]:
    """Yield the floor by role, the step from the floor up, and the runs."""
    if economics.floor:
        yield from floor.tables(economics.floor)
    if economics.served:
        yield _runs(economics.served)


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
    return Table("Benchmark", header, rows)


def _named(one: ServedReport) -> str:
    at = f" at {count(one.concurrency)}" if one.concurrency else ""
    return f"{plain(one.scenario, 60) or one.engine}{at}"
