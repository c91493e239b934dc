from __future__ import annotations

import sys

import polars as pl
import pytest

import bubblefinder
from bubblefinder.errors import UsageError
from bubblefinder.render.gaps import figure
from tests import samples


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return bubblefinder.gaps(samples.analysis("tp2_before.node"))


def _made(rows: int, **columns: object) -> pl.DataFrame:
    known = {"gpu": 0, "pid": 7, "step": 0, "excluded": None, "length_ns": 1_000_000, "idle_class": "host_late"}
    return pl.DataFrame({"row": range(rows)}).with_columns(
        **{
            name: pl.lit(value) if not isinstance(value, pl.Expr) else value
            for name, value in (known | columns).items()
        }
    )


@pytest.mark.parametrize("by", ["idle_class", "finding", "call"])
def test_the_bars_of_a_step_sum_to_its_idle_time(frame: pl.DataFrame, by: str) -> None:
    drawn = figure(frame, by)
    steps = frame.filter(pl.col("step").is_not_null() & pl.col("excluded").is_null())
    total = sum(sum(trace.y) for trace in drawn.data)
    assert total == pytest.approx(float(steps["length_ns"].sum()) / 1e6)
    assert [one.text for one in drawn.layout.annotations] == [
        f"GPU {gpu}, process {pid}" for gpu, pid in steps.select("gpu", "pid").unique().sort("gpu").rows()
    ]


def test_classes_have_the_colours_of_the_report_and_the_legend_names_each_once(frame: pl.DataFrame) -> None:
    drawn = figure(frame)
    assert {trace.name: trace.marker.color for trace in drawn.data}["host_late"] == "#c4312b"
    named = [trace.name for trace in drawn.data if trace.showlegend]
    assert len(named) == len(set(named)) == len({trace.name for trace in drawn.data})


def test_names_are_text_and_many_parts_are_one() -> None:
    hostile = _made(40, call=pl.format("<b>{}</b>", "row"))
    drawn = figure(hostile, "call")
    assert len(drawn.data) == 13
    assert {trace.name for trace in drawn.data} >= {"all others", "&lt;b&gt;0&lt;/b&gt;"}


@pytest.mark.parametrize(
    ("rows", "by", "said"),
    [
        (_made(1), "colour", "no column 'colour'"),
        (_made(1, excluded="head"), "idle_class", "no decode step"),
        (_made(17, gpu=pl.col("row")), "idle_class", "17 ranks"),
    ],
)
def test_what_can_t_be_drawn_is_said(rows: pl.DataFrame, by: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        figure(rows, by)


def test_without_plotly_the_extra_is_named(frame: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.subplots", None)
    with pytest.raises(UsageError, match="plots need plotly") as refused:
        bubblefinder.plot_gaps(frame)
    assert "[plot]" in refused.value.hint
