"""Every idle moment as one frame: its class, step, roles and ending call, and the finding that it is charged to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.causes.step_parts import HoleFacts
from bubblefinder.errors import CannotAnswerError
from bubblefinder.intervals import Ints, begin_and_end, held_by, split
from bubblefinder.lookup import nullable, on_gpu, taken
from bubblefinder.report.detail.kernels import kernel_name
from bubblefinder.report.detail.tables import class_name, labels
from bubblefinder.rules.config import Config
from bubblefinder.rules.engine import run_rules
from bubblefinder.rules.packs import load_packs
from bubblefinder.rules.subjects import identity
from bubblefinder.timeline.missing import missing_work
from bubblefinder.timeline.model import IdleClass
from bubblefinder.timeline.rank import Rank
from bubblefinder.trace.model import KERNEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.pipeline import Analysis
    from bubblefinder.rules.model import Match

_COLUMNS: Final = {
    "gpu": pl.Int64,
    "pid": pl.Int64,
    "step": pl.Int64,
    "excluded": pl.String,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "length_ns": pl.Int64,
    "idle_class": pl.String,
    "after_role": pl.String,
    "before_role": pl.String,
    "call": pl.String,
    "kernel": pl.String,
    "wait": pl.String,
    "finding": pl.String,
    "title": pl.String,
    "gap_index": pl.Int64,
}


def gaps(analysis: Analysis) -> pl.DataFrame:
    """Return every idle moment of a capture, a row for each stretch that has one class, one step and one cause.

    The lengths of a class in a step sum to what the report's ledger says of that step.

    Args:
        analysis: the capture and what was found in it.

    Returns:
        One row a stretch, by GPU, process and time:

        * gpu, pid (whose steps: null on a GPU without steps; a GPU that two processes step on has rows for both)
        * step (index of the window, null outside), excluded (null in a decode step, else the reason)
        * start_ns, end_ns, length_ns: on the capture's own clock
        * idle_class: a class of the ledger, such as ``host_late``; ``unrecorded`` and ``profiler`` are no idle time
        * after_role, before_role: the operations around the gap by their role, or what they do outside replays
        * call: the launch call of the operation that ends the gap, kernel: that operation's name if it is a kernel
        * wait: the call that the host waited in, finding and title: the rule and headline about that wait or pause;
          null for idle that is charged to none
        * gap_index: position in `analysis.timeline.gaps`; a gap may have several rows

    Raises:
        CannotAnswerError: the export lacks the work of its CUDA graphs, so that what looks idle may have been busy.
    """
    if missing := missing_work(analysis.timeline.mode, analysis.trace.notes):
        raise CannotAnswerError(f"{missing.why}, so no gap can be told", hint=missing.hint)
    parts = [_of_gpu(analysis, gpu, rank) for gpu, rank in _lanes(analysis)]
    rows = pl.concat(parts) if parts else pl.DataFrame(schema=_PIECES)
    return _named(rows, analysis).select(pl.col(name).cast(kind) for name, kind in _COLUMNS.items())


_PIECES: Final = {
    "gpu": pl.Int64, "pid": pl.Int64, "step": pl.Int64, "excluded": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64,
    "idle_class": pl.Int64, "gap_index": pl.Int64, "wait_index": pl.Int64, "pause_index": pl.Int64,
}  # fmt: skip


def _lanes(analysis: Analysis) -> Iterator[tuple[int, Rank | None]]:
    """Yield each GPU with each rank that has steps on it, or with none."""
    ranks = Rank.in_rows(analysis.steps.windows)
    for device in analysis.timeline.devices:
        mine = [rank for rank in ranks if rank.gpu == device.gpu]
        yield from ((device.gpu, rank) for rank in mine or (None,))


def _of_gpu(analysis: Analysis, gpu: int, rank: Rank | None) -> pl.DataFrame:
    """Return the idle pieces of a GPU, cut where a step of the rank or a charge begins or ends."""
    pieces = on_gpu(analysis.timeline.pieces.with_row_index("piece_index"), gpu)
    known = analysis.steps.windows
    windows = known.filter(rank.mine) if rank else known.clear()
    charges = analysis.causes.charges.join(pieces[["piece_index"]], on="piece_index", how="semi").sort("start_ns")
    cuts = pl.concat([frame[side] for frame in (windows, charges) for side in ("start_ns", "end_ns")]).to_numpy()
    starts, ends, parent = split(*begin_and_end(pieces), cuts)
    step, charge = _held(starts, windows), _held(starts, charges)
    return pl.DataFrame(
        {
            "gpu": gpu,
            "pid": rank.pid if rank else None,
            "step": windows["index"][step],
            "excluded": windows["excluded"][step],
            "start_ns": starts,
            "end_ns": ends,
            "idle_class": pieces["idle_class"][parent],
            "gap_index": pieces["gap_index"][parent],
            "wait_index": charges["wait_index"][charge],
            "pause_index": charges["pause_index"][charge],
        },
        schema=_PIECES,
        strict=False,
    )


def _held(points: Ints, frame: pl.DataFrame) -> pl.Series:
    """Return the row of a frame of disjoint intervals that each point lies in, null for none."""
    return nullable(held_by(points, *begin_and_end(frame)))


def _named(rows: pl.DataFrame, analysis: Analysis) -> pl.DataFrame:
    """Put names in the place of positions."""
    timeline, steps, waits = analysis.timeline, analysis.steps, analysis.causes.waits
    around = taken(timeline.gaps[["before_index", "after_index", "call_index"]], rows["gap_index"])
    ended = taken(timeline.operations[["kind", "name"]], around["after_index"])
    kernels = {name: kernel_name(name, timeline.trace.names) for name in ended["name"].drop_nulls().unique()}
    found = _found(analysis)
    return rows.with_columns(
        length_ns=pl.col("end_ns") - pl.col("start_ns"),
        idle_class=rows["idle_class"].replace_strict(
            {int(one): class_name(one) for one in IdleClass}, return_dtype=pl.String
        ),
        after_role=labels(timeline, steps, around["before_index"]),
        before_role=labels(timeline, steps, around["after_index"]),
        call=timeline.calls["api"][around["call_index"]],
        kernel=ended.select(
            pl.when(kind=KERNEL).then(pl.col("name").replace_strict(kernels, default=None, return_dtype=pl.String))
        ).to_series(),
        wait=waits["api"][rows["wait_index"].cast(pl.UInt32)],
        site=waits["site"][rows["wait_index"].cast(pl.UInt32)],
    ).join(found, on=["site", "pause_index"], how="left", nulls_equal=True, maintain_order="left")


def _found(analysis: Analysis) -> pl.DataFrame:
    """Return the finding about each site of waits and each pause: site or pause_index, finding, title."""
    verdicts = run_rules(analysis.facts, load_packs(()), Config())
    matches = [*verdicts.findings, *(covered.match for covered in verdicts.expected)]
    sites = [(site, None, match.rule, match.title) for match in matches for site in match.sites]
    pauses = [
        (None, pause, match.rule, match.title)
        for step in analysis.facts.steps
        for hole in step.holes
        for match in matches
        if _is_of(match, hole)
        for pause in hole.pauses
    ]
    schema = {"site": pl.Int64, "pause_index": pl.Int64, "finding": pl.String, "title": pl.String}
    return pl.DataFrame([*sites, *pauses], schema=schema, orient="row").unique(["site", "pause_index"], keep="first")


def _is_of(match: Match, hole: HoleFacts) -> bool:
    """Say whether a match is about the pauses of a rank, or of another where it is the same."""
    return (
        isinstance(match.subject, HoleFacts)
        and (hole.gpu, hole.process) in match.devices
        and identity(match.subject) == identity(hole)
    )
