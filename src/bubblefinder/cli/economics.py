"""What the user says about the model and its serving."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bubblefinder.compare.scenario import Results
    from bubblefinder.economics.bench import Bench
    from bubblefinder.report.economics_build import Question


def question(
    model: str | None,
    load: tuple[int, int, int, int, int],
    bandwidth: float | None,
    benches: Sequence[Path] = (),
    accept_length: float | None = None,
) -> Question:
    """Return what is asked of the floor and of benchmark runs.

    Args:
        model: a shape's name, or a file; null: no floor.
        load: ranks, context, batch, draft steps and draft tokens.
        bandwidth: GB a second, instead of the capture's own.
        benches: files that benchmarks wrote.
        accept_length: tokens a verify pass commits; null: as the benchmarks say.

    Raises:
        UsageError: there is no such shape, or a file is wrong.
    """
    from bubblefinder.economics.shapes import load_shape
    from bubblefinder.economics.traffic import Load
    from bubblefinder.report.economics_build import Question

    ranks, context, batch, draft_steps, draft_tokens = load
    return Question(
        shape=load_shape(model) if model else None,
        load=Load(ranks=ranks, context=context, batch=batch, draft_steps=draft_steps, draft_tokens=draft_tokens),
        bandwidth=bandwidth * 1e9 if bandwidth else None,
        benches=runs_of(benches),
        accept_length=accept_length,
    )


def runs_of(benches: Sequence[Path]) -> tuple[Bench, ...]:
    """Return the runs that these files hold.

    Raises:
        UsageError: a file is wrong.
    """
    from bubblefinder.economics.bench import read_bench

    return tuple(run for path in benches for run in read_bench(path))


def results_of(benches: Sequence[Path], acceptance: Path | None) -> Results:
    """Return what is known of serving.

    Raises:
        UsageError: a file is wrong.
    """
    from bubblefinder.compare.scenario import Results
    from bubblefinder.economics.acceptance import read_acceptance

    return Results(benches=runs_of(benches), acceptance=read_acceptance(acceptance) if acceptance else None)
