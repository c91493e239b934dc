"""Captures of more GPUs than anybody reads: which of them are shown, and how the rest is told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

from bubblefinder.report.sentences import plain
from bubblefinder.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bubblefinder.report.model import DeviceReport, DeviceSteps, GpuInfo, Report

T = TypeVar("T")
MOST: Final = 32
"""Rows of a table of ranks or GPUs: four nodes of eight. A pull request's comment has room for no more."""
_MOST_NAMED: Final = 8
"""GPUs named one by one: those of a node."""


def ranks_shown(report: Report) -> tuple[list[DeviceSteps], str]:
    """Return the ranks with decode steps to show, in their order, and what is to say of the others.

    Of more than `MOST` these are the reported one and those that idle longest in a step.
    """
    ranks = [one for one in report.steps.by_device if one.count]
    shown = (report.steps.gpu, report.steps.pid)
    kept = _most(ranks, lambda one: ((one.gpu, one.pid) == shown, _idle_in_step(one)))
    return kept, _others(len(ranks) - len(kept), "rank")


def gpus_shown(report: Report) -> tuple[list[DeviceReport], str]:
    """Return the GPUs whose ledger to show, in their order, and what is to say of the others.

    Of more than `MOST` these are the reported one and those that are idle for the longest share of their span.
    """
    gpus = report.devices
    kept = _most(gpus, lambda one: (one.gpu == report.steps.gpu, 1 - one.busy_ns / max(one.span_ns, 1)))
    return kept, _others(len(gpus) - len(kept), "GPU")


def gpu_words(gpus: Sequence[GpuInfo]) -> str:
    """Return the GPUs of a capture in one line: each with its name, or how many there are of each name."""
    if len(gpus) <= _MOST_NAMED:
        return ", ".join(f"GPU {gpu.gpu} {plain(gpu.name, 40)}".strip() for gpu in gpus)
    names = Counter(plain(gpu.name, 40) for gpu in gpus).most_common()
    told = [f"{plural(number, 'GPU')} {name}".strip() for name, number in names[:_MOST_NAMED]]
    return ", ".join([*told, *(["others"] if len(names) > _MOST_NAMED else [])])


def _most(rows: Sequence[T], key: Callable[[T], tuple[bool, float]]) -> list[T]:
    """Return at most `MOST` rows, those with the highest key, in their order."""
    chosen = sorted(range(len(rows)), key=lambda place: key(rows[place]), reverse=True)[:MOST]
    return [rows[place] for place in sorted(chosen)]


def _idle_in_step(one: DeviceSteps) -> float:
    return (one.per_step["duration"].mean or 0.0) - (one.per_step["busy"].mean or 0.0)


def _others(number: int, noun: str) -> str:
    return f"{plural(number, noun)} more, which idle less: the JSON report has all." if number else ""
