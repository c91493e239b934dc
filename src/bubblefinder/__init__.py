"""bubblefinder: how much of an LLM decode step the GPU idles, which host call is to blame, what a cure gives.

    import bubblefinder

    report = bubblefinder.analyze("decode.sqlite")
    print(report.steps.bubble_share.total)

Heavy libraries load when a function first needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bubblefinder._version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import polars as pl
    from plotly.graph_objects import Figure

    from bubblefinder.compare.model import Diff
    from bubblefinder.pipeline import Analysis
    from bubblefinder.report.model import Report
    from bubblefinder.trace.model import Trace

__all__ = ["__version__", "analysis", "analyze", "diff", "gaps", "open_trace", "plot_gaps"]


def open_trace(path: str | PathLike[str]) -> Trace:
    """Return the capture at `path`: a SQLite export of any version, a parquetdir or arrowdir folder, or a .nsys-rep.

    Raises:
        InputError: the path holds no readable Nsight Systems capture.
    """
    from bubblefinder.trace.open import open_trace as open_it

    return open_it(path)


def analysis(
    path: str | PathLike[str], *, window: tuple[int, int] | None = None, step_by: str | None = None
) -> Analysis:
    """Return a capture with all that is found in it: timeline, steps, causes, facts, and a run that can be changed.

    Args:
        path: as for `open_trace`.
        window: only operations that start in [start, end), ns from the capture's start.
        step_by: how to find the steps, such as ``"nvtx:step"`` or ``"cadence"``.

    Raises:
        InputError: the capture can't be read. Each stage says for itself what it raises when it is asked for.
    """
    from bubblefinder.pipeline import Analysis

    return Analysis(open_trace(path), window, step_by)


def gaps(analysis: Analysis) -> pl.DataFrame:
    """Return every idle moment of a capture with its class, step, roles, ending call, wait and finding.

    One row a stretch; `bubblefinder.report.gaps.gaps` lists the columns. The lengths of a class in a step sum to what
    the report's ledger says of that step.

    Raises:
        CannotAnswerError: the export lacks the work of its CUDA graphs, so that what looks idle may have been busy.
    """
    from bubblefinder.report.gaps import gaps as found

    return found(analysis)


def plot_gaps(frame: pl.DataFrame, by: str = "idle_class") -> Figure:
    """Return a plotly figure of `gaps`, or of some of its rows: idle time of every decode step, stacked by a column.

    Raises:
        UsageError: plotly is not installed (the extra `plot`), or there is nothing to draw.
    """
    from bubblefinder.render.gaps import figure

    return figure(frame, by)


def analyze(path: str | PathLike[str], **options: Any) -> Report:  # noqa: ANN401 - the fields of Options
    """Return the report on a capture.

    Args:
        path: as for `open_trace`.
        options: fields of `bubblefinder.report.build.Options`, such as ``gpu=1`` or ``step_by="cadence"``.

    Raises:
        InputError: the capture can't be read, or can't answer the question.
        UsageError: an option is wrong.
    """
    from bubblefinder.report.build import Options, analyze_trace

    return analyze_trace(open_trace(path), Options(**options))


def diff(base: Sequence[Report], head: Sequence[Report]) -> Diff:
    """Return what changed per step between the captures of two sides.

    Sides that can't be compared give the verdict ``incomparable`` and the reasons.
    """
    from bubblefinder.compare.diff import diff as compare

    return compare(base, head)
