"""The frame of gaps as a picture: idle time of every decode step, stacked by what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bubblefinder.errors import UsageError
from bubblefinder.render.kit.figure import label
from bubblefinder.render.kit.palette import COLOURS
from bubblefinder.units import NS_PER_MS, plural

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_MOST_RANKS: Final = 16
"""Each rank has a row of bars of its own; more would be too low to read."""
_MOST_PARTS: Final = 12
"""What a stack is cut into at most; the smallest parts are one."""
_NONE: Final = "none"
_REST: Final = "all others"
_RANK: Final = ("gpu", "pid")


def figure(frame: pl.DataFrame, by: str = "idle_class") -> Figure:
    """Return the idle time of every decode step as stacked bars, a row of them for each rank.

    Args:
        frame: rows of `report.gaps.gaps`, all or some; those outside decode steps are left out.
        by: the column that says what a step's bar is cut into: ``idle_class``, ``finding``, ``call``, ``wait``, ...

    Raises:
        UsageError: plotly is not installed, the frame has no such column, no decode step, or more ranks than fit.
    """
    try:
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise UsageError(
            "plots need plotly, which is not installed", hint="pip install 'bubblefinder[plot]' installs it"
        ) from error
    sums = _sums(frame, by)
    ranks = sums.select(_RANK).unique().sort(_RANK).rows()
    if len(ranks) > _MOST_RANKS:
        raise UsageError(
            f"{plural(len(ranks), 'rank')} don't fit into one picture",
            hint=f"filter the frame to {_MOST_RANKS}, for example frame.filter(pl.col('gpu') < {_MOST_RANKS})",
        )
    parts = sums["part"].unique(maintain_order=True).to_list()
    titles = [f"GPU {gpu}, process {pid}" for gpu, pid in ranks]
    drawn: Figure = make_subplots(rows=len(ranks), shared_xaxes=True, subplot_titles=titles)
    for row, (gpu, pid) in enumerate(ranks, 1):
        mine = sums.filter((pl.col("gpu") == gpu) & (pl.col("pid") == pid))
        for number, part in enumerate(parts):
            bars = _bars(part, mine.filter(pl.col("part") == part), number)
            drawn.add_trace(bars | {"showlegend": row == 1}, row=row, col=1)
    drawn.update_layout(barmode="stack", title_text=f"Idle time of decode steps by {by}", legend_title_text=by)
    drawn.update_yaxes(title_text="ms")
    drawn.update_xaxes(title_text="decode step", row=len(ranks))
    return drawn


def _sums(frame: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return the time of each part in each decode step: gpu, pid, step, part, length_ns; the largest part first."""
    if by not in frame.columns:
        raise UsageError(f"the frame has no column {by!r}", hint="one of " + ", ".join(frame.columns))
    part = pl.col(by).cast(pl.String).fill_null(_NONE)
    steps = frame.filter(pl.col("step").is_not_null() & pl.col("excluded").is_null()).with_columns(part=part)
    if steps.is_empty():
        raise UsageError("the frame has no decode step", hint="it may have been filtered to nothing")
    largest = steps.group_by("part").agg(pl.col("length_ns").sum()).sort("length_ns", "part", descending=[True, False])
    kept = largest["part"].head(_MOST_PARTS).to_list()
    shown = pl.when(pl.col("part").is_in(kept)).then("part").otherwise(pl.lit(_REST))
    sums = steps.with_columns(part=shown).group_by(*_RANK, "step", "part").agg(pl.col("length_ns").sum())
    return sums.sort(pl.col("part").cast(pl.Enum(list(dict.fromkeys([*kept, _REST])))), *_RANK, "step")


def _bars(part: str, rows: pl.DataFrame, number: int) -> dict[str, Any]:
    """Return the bars of one part in every step, in the colour of its class, or that of its number."""
    from plotly.colors import qualitative

    return {
        "type": "bar",
        "name": label(part),
        "legendgroup": str(number),
        "x": rows["step"].to_list(),
        "y": (rows["length_ns"] / NS_PER_MS).to_list(),
        "marker": {"color": COLOURS[part][0] if part in COLOURS else qualitative.Safe[number % len(qualitative.Safe)]},
        "hovertemplate": "step %{x}: %{y:.3f} ms<extra>%{fullData.name}</extra>",
    }
