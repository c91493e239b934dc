"""Holds what the replay says of programs against what they took once changed: one line a pair. See README.md."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.errors import CannotAnswerError
from bubblefinder.pipeline import Analysis
from bubblefinder.replay.answer import answer
from bubblefinder.replay.changes import CaptureEager, RemoveWaits
from bubblefinder.report.build import report_of
from bubblefinder.trace.open import open_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.doubt import Estimate
    from bubblefinder.timeline.rank import Rank

SAMPLES: Final = Path(__file__).parents[1] / "sample_traces"
MS: Final = 1e6
DIGIT: Final = 0.01
"""A range that is narrower, in ms, has no width in the table."""
ALL: Final = "all waits"
R, RC, P = "SGL001", "SGL001 SGL005", "FI001 FI003 SGL003"
RCP: Final = f"{RC} {P}"
"""Waits by their rules: for the lengths, for the draft's indices, and in plan()."""


@dataclass(frozen=True, slots=True)
class Span:
    """What was measured, in ms, and between which ends."""

    low: float
    middle: float
    high: float

    def touches(self, low: float, high: float) -> bool:
        """Say whether a range reaches into it."""
        return low <= self.high and self.low <= high


@dataclass(frozen=True, slots=True)
class Pair:
    """A program that was captured, and what it took with and without a change.

    Attributes:
        capture: the sample that is asked.
        without: the rules whose waits go; `ALL`, or `capture ROLE` for an eager phase.
        before: what a step took, in ms; the sample whose recorded steps say so.
        after: the same of the changed program.
        told: the mean untraced step that the replay is told, in ms; null to ask the capture as it is.
        rank: which of the ranks.
    """

    capture: str
    without: str
    before: tuple[float, ...] | str
    after: tuple[float, ...] | str
    told: float | None = None
    rank: int = 0


SWITCH: Final = {
    "": (8.143, 8.243, 8.217, 8.150, 8.155, 8.129, 8.109, 8.251, 8.162, 8.325, 8.231, 8.459),
    R: (8.153, 8.194, 8.525, 8.341),
    RC: (7.982, 7.948, 7.982, 8.340),
    RCP: (6.860, 6.885, 7.016, 7.016, 6.933, 6.999, 7.150, 7.050, 7.011, 7.049, 6.979, 6.979),
    P: (7.642, 7.645, 7.633, 7.757),
}
"""The process of `switch.graph`, untraced, with each set of patches: the mean step of each round."""
SLOW: Final = {
    "": (9.313, 9.059, 9.623, 9.104, 8.978, 9.028, 8.997, 9.061, 8.992, 9.037, 8.998, 8.999),
    R: (10.091, 9.110, 8.544, 8.592),
    RC: (8.160, 7.917, 8.129, 8.142),
    RCP: (6.684, 6.879, 6.724, 6.954, 6.949, 6.779, 6.800, 6.804, 6.872, 6.878, 6.800, 6.648),
    P: (9.156, 9.186, 8.676, 8.992),
}
"""That of `slow_host.graph`."""
SECOND: Final = {
    "": (9.464, 8.656, 8.411, 8.173, 8.190, 8.336, 8.189, 8.260, 8.218, 8.244, 9.192, 7.642),
    R: (8.185, 8.108, 8.183, 8.385),
    RC: (8.153, 8.260, 7.823, 8.056),
    RCP: (7.424, 6.993, 6.915, 6.949, 7.024, 6.887, 6.798, 6.841, 7.014, 6.657, 7.283, 7.520),
    P: (7.965, 7.870, 7.832, 7.926),
}
"""A process of the machine of `functions_few.graph` and `functions_many.graph`."""
NEXTN: Final = {"graph": ((10.689,), (9.317,)), "node": ((9.049,), (6.839,))}
"""The two processes of `sglang_nextn`, with their reads and without, one after the other: hosts drift."""


RECORDED: Final = (
    ("nextn_before.node", "nextn_after.node"),
    ("dspark_before.node", "dspark_after.node"),
    ("nextn_item_nonvtx.node", "nextn_after.node"),
    ("hard_before.graph", "hard_after.graph"),
    ("seeded/read.graph", "seeded/base_1.graph"),
    ("seeded/read.node", "seeded/base_2.node"),
    *(
        (f"workloads/{before}.{mode}", f"workloads/{after}.{mode}")
        for before, after in (("read", "ahead"), ("plan_device", "plan_host"), ("vllm_sync", "vllm_full"))
        for mode in ("graph", "node")
    ),
    ("workloads/batching_sync.graph", "workloads/batching_async.graph"),
)
"""Captures of a program, and of one that doesn't wait, of another process."""
NEXTN_MS: Final = (8.44, 8.51, 9.60), (7.014, 7.015, 7.018)
CLOCKED: Final = (
    ("nextn_before.graph", *NEXTN_MS, 8.51),
    ("nextn_before.node", (8.40, 8.56, 9.02), NEXTN_MS[1], 8.56),
    ("dspark_before.node", (7.137, 7.143, 7.188), (7.019, 7.023, 7.039), 7.143),
    ("workloads/read.graph", (1.426,), (1.121,), 1.426),
    ("workloads/plan_device.graph", (1.561,), (1.131,), 1.561),
    ("workloads/batching_sync.graph", (9.757,), (8.210,), 9.757),
    ("workloads/vllm_sync.graph", (3.846,), (2.588,), 3.846),
    ("workloads/vllm_sync.node", (3.440,), (2.060,), 3.440),
)
"""Untraced steps of a program that waits, and of one that doesn't, of another process; and what the replay is told."""
ENGINE: Final = (
    *(("switch.graph", SWITCH, told) for told in (None, 8.21)),
    *(("slow_host.graph", SLOW, told) for told in (None, 9.05)),
    *((capture, SWITCH, 8.21) for capture in ("fi.graph", "fi_2.graph", "chain.graph", "fi_functions.graph")),
    *((capture, SECOND, 8.25) for capture in ("functions_few.graph", "functions_many.graph")),
)
"""The engine with its waits patched away by sets, and what the replay is told."""


def pairs() -> Iterator[Pair]:
    """Yield every pair that was measured."""
    yield from (Pair(before, ALL, before, after) for before, after in RECORDED)
    yield from (Pair("tp2_before.node", ALL, "tp2_before.node", (4.77,), rank=rank) for rank in (0, 1))
    yield Pair("seeded/eager.node", "capture eager after draft", "seeded/eager.node", "seeded/base_2.node")
    yield Pair("nextn_before.graph", ALL, *NEXTN_MS)
    yield from (Pair(capture, ALL, before, after, told) for capture, before, after, told in CLOCKED)
    for after, without in (("chain_1", R), ("chain_2", RC), ("chain_3", RCP)):
        yield Pair("sglang/chain.graph", without, "sglang/chain.graph", f"sglang/{after}.graph")
    for before in ("sglang/chain_1.graph", "sglang/chain_2.graph"):
        yield Pair(before, RCP, before, "sglang/chain_3.graph")
    for capture, known, told in ENGINE:
        yield from (Pair(f"sglang/{capture}", gone, known[""], known[gone], told) for gone in (R, RC, P, RCP))
    for mode, (before, after) in NEXTN.items():
        yield from (Pair(f"workloads/sglang_nextn.{mode}", RCP, before, after, told) for told in (None, *before))


@cache
def analysis(name: str) -> Analysis:
    """Return a sample with what is found in it."""
    return Analysis(open_trace(SAMPLES / f"{name}.sqlite.xz"))


def measured(told: tuple[float, ...] | str, rank: int) -> Span:
    """Return the step, in ms: the middle half of rounds, or the median of a capture as recorded."""
    if not isinstance(told, str):
        low, middle, high = np.percentile(told, (25, 50, 75)).tolist()
        return Span(low, middle, high)
    found = analysis(told).study
    middle = float(np.median(found.model.windows.filter(found.ranks[rank].mine)["recorded_ns"].to_numpy())) / MS
    return Span(middle, middle, middle)


def change_of(pair: Pair, lane: Rank) -> Change:
    """Return what is taken away."""
    found = analysis(pair.capture)
    if pair.without.startswith("capture "):
        return CaptureEager(pair.without.removeprefix("capture "))
    if pair.without == ALL:
        return RemoveWaits(frozenset(found.study.model.waits["site"]))
    (told,), links = report_of(found).wait_chains, found.recoverable.chains[lane].links
    gone = [wait.site for link, wait in zip(told.links, links, strict=True) if link.rule in pair.without.split()]
    return RemoveWaits(frozenset(site for wait in gone for site in wait.sites))


def said(pair: Pair) -> Estimate:
    """Return what the replay says."""
    study = analysis(pair.capture).study
    lane = study.ranks[pair.rank]
    asked = study.at_untraced(lane, pair.told * MS, mean=True) if pair.told else study
    told = answer(asked, lane, [change_of(pair, lane)]).asked
    assert told
    return told


@dataclass(frozen=True, slots=True)
class Row:
    """One pair: what was measured, and what is said; in ms, the said value null where there is a range alone."""

    pair: Pair
    step: Span
    gain: Span
    said_step: tuple[float | None, float, float]
    said_gain: tuple[float | None, float, float]

    @property
    def holds(self) -> tuple[bool, bool]:
        """Whether the step, and the gain, that was measured lies within what is said."""
        return self.step.touches(*self.said_step[1:]), self.gain.touches(*self.said_gain[1:])

    @property
    def widths(self) -> tuple[float, float]:
        """How wide the ranges of the step and of the gain are."""
        return self.said_step[2] - self.said_step[1], self.said_gain[2] - self.said_gain[1]

    def line(self) -> str:
        """Return the row of the table."""
        names = {ALL: ALL, R: "lengths", RC: "lengths and draft", P: "plan()", RCP: "all three"}
        told = "" if self.pair.told is None else f"{self.pair.told:g}"
        cells = [self.pair.capture, names.get(self.pair.without, self.pair.without), told]
        for known, (value, low, high), holds in zip(
            (self.step, self.gain), (self.said_step, self.said_gain), self.holds, strict=True
        ):
            cells += [f"{known.middle:.2f}", "" if value is None else f"{value:.2f}", f"{low:.2f} to {high:.2f}"]
            cells += ["yes" if holds else "**no**"]
        return f"| {' | '.join(cells)} |"


def row_of(pair: Pair) -> Row:
    """Return what was measured of a pair, and what is said."""
    gives = said(pair)
    before, after = (measured(told, pair.rank) for told in (pair.before, pair.after))
    gain = Span(before.low - after.high, before.middle - after.middle, before.high - after.low)
    value = gives.value
    step, less = (value.step_ns / MS, value.recoverable_ns / MS) if value else (None, None)
    (short, long), (least, most) = ([end / MS for end in ends] for ends in (gives.step_range_ns, gives.gain_range_ns))
    return Row(pair, after, gain, (step, short, long), (less, least, most))


def main() -> None:
    """Print the table and what it comes to."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print("| capture | without | told | step then | said | range | holds | gain | said | range | holds |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    rows = []
    for pair in pairs():
        try:
            rows.append(row_of(pair))
        except CannotAnswerError as error:
            print(f"| {pair.capture} | | {pair.told:g} | {error} | | | | | | | |")
        else:
            print(rows[-1].line(), flush=True)
    for what, number in (("step", 0), ("gain", 1)):
        held, widths = sum(row.holds[number] for row in rows), [row.widths[number] for row in rows]
        wide = [width for width in widths if width >= DIGIT]
        print(
            f"{what}: {held} of {len(rows)} held, {len(rows) - len(wide)} ranges without a width; "
            f"median width {np.median(widths):.2f} ms, {np.median(wide):.2f} of those with one"
        )
    off = [abs(row.said_gain[0] - row.gain.middle) for row in rows if row.said_gain[0] is not None]
    half, most = np.percentile(off, (50, 90))
    print(f"gain: half of {len(off)} values lie within {half:.3f} ms, nine in ten within {most:.2f}")


if __name__ == "__main__":
    main()
