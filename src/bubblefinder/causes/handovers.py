"""Threads that launch only after another thread's wait has ended: whose waits hold them up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from bubblefinder.causes.thresholds import FEWEST, HANDOVER_NS, STALL_NS, STEADY, STEADY_NS, USUALLY
from bubblefinder.lookup import kept

if TYPE_CHECKING:
    from bubblefinder.timeline.model import Timeline

SLEEPS: Final = r"(?i)wait|futex|lock|sem_|join|poll|select|recv|read|sleep"
_PAIR: Final = ("thread", "launcher", "gpu", "api")


def held_up_by_others(calls: pl.DataFrame, launchers: pl.DataFrame, timeline: Timeline) -> pl.DataFrame:
    """Return the waits of other threads, once for each launching thread that waits for them, with `launcher` and `gpu`.

    A launching thread waits for another if it makes no call from the other's wait on and comes back when that has
    ended: at once, or out of a sleep in the operating system that covers the end, or, in every step alike, after a
    steady time. And it does so for most of the other's waits of that kind, since once may be chance.

    Args:
        calls: waits, as `waits.find_waits` has them before it knows whom they hold up.
        launchers: process, thread and gpu of the threads that launch.
        timeline: the timeline.
    """
    pairs = _pairs(calls, launchers)
    if pairs.is_empty():
        return pairs
    made = timeline.calls.select(launcher="thread", at="start_ns", before_end_ns="end_ns")
    after = made.select("launcher", "at", resumed_ns="at")
    slept = timeline.trace.os_calls.filter(pl.col("name").str.contains(SLEEPS)).select(
        launcher="thread",
        at="start_ns",
        slept_ns="end_ns",
    )
    placed = _beside(pairs, made, "backward")
    placed = _beside(placed, after, "forward")
    placed = _beside(placed, slept, "backward")
    silent = (pl.col("before_end_ns") <= pl.col("start_ns")) & (pl.col("resumed_ns") >= pl.col("end_ns"))
    at_once = pl.col("resumed_ns") - pl.col("end_ns") <= HANDOVER_NS
    woken = pl.col("slept_ns").is_between(pl.col("end_ns"), pl.col("resumed_ns")).fill_null(value=False)
    placed = placed.with_columns(silent=silent.fill_null(value=False), shown=at_once | woken)
    held = pl.col("silent") & (pl.col("shown") | _in_order())
    usually = held.mean().over(_PAIR) >= USUALLY
    return placed.filter(held & usually).select(*pairs.columns)


def _pairs(calls: pl.DataFrame, launchers: pl.DataFrame) -> pl.DataFrame:
    """Return each wait with every other thread of its process that launches; if its own does, then on the same GPU.

    Of two threads that both launch, the one that waits may hold the other up as well, if it waits for long: between
    short waits a busy thread always makes some call.
    """
    pairs = kept(calls, calls["awaits"]).join(
        launchers.select_seq("process", "gpu", launcher="thread"), on="process", maintain_order="left"
    )
    pairs = kept(pairs, pairs["thread"] != pairs["launcher"])
    if pairs.is_empty():
        return pairs
    own = launchers[["thread", "gpu"]].with_columns(shared=pl.lit(value=True))
    pairs = pairs.join(own, on=["thread", "gpu"], how="left", maintain_order="left")
    launches = pl.col("thread").is_in(launchers["thread"].unique().implode())
    long = pl.col("end_ns") - pl.col("start_ns") >= STALL_NS
    return pairs.filter(~launches | (pl.col("shared").fill_null(value=False) & long)).drop("shared").sort("end_ns")


def _in_order() -> pl.Expr:
    """Tell the waits whose thread the launching one follows after a steady time, one wait a silence."""
    lag = pl.when("silent").then(pl.col("resumed_ns") - pl.col("end_ns"))
    usual = lag.median().over(_PAIR)
    varies = (lag - usual).abs().median().over(_PAIR)
    silences = pl.when("silent").then("resumed_ns").n_unique().over(_PAIR)
    enough = pl.col("silent").sum().over(_PAIR) >= FEWEST
    once = silences >= (1 - STEADY) * pl.col("silent").sum().over(_PAIR)
    return (enough & once & (varies <= STEADY * usual + STEADY_NS)).fill_null(value=False)


def _beside(waits: pl.DataFrame, rows: pl.DataFrame, strategy: Literal["backward", "forward"]) -> pl.DataFrame:
    """Join the row of the launching thread that begins last before, or first after, the end of each wait."""
    points = rows.with_columns(end_ns="at").sort("end_ns").drop("at")
    return waits.join_asof(points, on="end_ns", by="launcher", strategy=strategy, check_sortedness=False)
