"""Names of calls carried over from another capture of the same program.

Call chains double a step, so a capture that has them has useless times and telling names. A call of the light capture
is the counterpart of a call of the other one if both stand at the same place of the step: in the stretch from the
launch of one role to that of the next, at the same position of the same sequence of calls. Where sequences differ they
are aligned, from the front and from the back; a call that the two alignments place differently has no counterpart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.lookup import kept
from bubblefinder.timeline.apis import CallRole
from bubblefinder.trace.model import QualityNote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import Trace

_TOLD_APART: Final = [int(role) for role in CallRole if role is not CallRole.OTHER]
"""Calls that do something for the GPU: of others each way of capturing makes its own."""
_LEAST_ALIKE: Final = 0.5
"""Sequences that share less than this aren't the same stretch of the program."""

Tokens = tuple[str, ...]
Names = tuple[str, ...]
Seam = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The calls of a thread from the launch of one role to that of the next, and what tells each from the others."""

    seam: Seam
    calls: tuple[int, ...]
    tokens: Tokens


def carry_names(timeline: Timeline, submitted: pl.DataFrame, named: Timeline, named_submitted: pl.DataFrame) -> Trace:
    """Return the capture with the names of another one as call chains, and a note that says how many calls have them.

    A call that has a chain keeps it.

    Args:
        timeline: the capture whose times count.
        submitted: what its threads launched, from `causes.launches.find_submissions`.
        named: the capture whose names count.
        named_submitted: the same of it.
    """
    known = _names_by_place(named, stretches(named, named_submitted))
    mine = stretches(timeline, submitted)
    found = dict[int, Names]()
    aligned = dict[tuple[Seam, Tokens], tuple[Names | None, ...]]()
    for stretch in mine:
        place = (stretch.seam, stretch.tokens)
        if place not in aligned:
            aligned[place] = _counterparts(stretch.tokens, known.get(stretch.seam, {}))
        found |= {call: names for call, names in zip(stretch.calls, aligned[place], strict=True) if names}
    return _with_chains(timeline, found, sum(len(stretch.calls) for stretch in mine), named.trace.info.name)


def stretches(timeline: Timeline, submitted: pl.DataFrame) -> list[Stretch]:
    """Return the stretches of every launching thread, in time order by thread."""
    calls = _calls(timeline, submitted)
    launched = submitted.filter(pl.col("role").is_not_null())
    phases = launched.unique(["thread", "phase"], keep="first", maintain_order=True)
    found = []
    for (thread,), mine in phases.sort("start_ns").partition_by("thread", as_dict=True, maintain_order=True).items():
        own = kept(calls, calls["thread"] == thread)
        cuts = np.searchsorted(own["start_ns"].to_numpy(), mine["start_ns"].to_numpy())
        roles = mine["role"].to_list()
        for number, (low, high) in enumerate(pairwise(cuts.tolist())):
            part = own[low:high]
            found.append(
                Stretch((roles[number], roles[number + 1]), tuple(part["call_index"]), tuple(part["token"].to_list()))
            )
    return found


def _calls(timeline: Timeline, submitted: pl.DataFrame) -> pl.DataFrame:
    """Return the outermost calls that do something for the GPU: call_index, thread, start_ns, token."""
    operations = timeline.operations[["name", "copy_kind", "bytes"]]
    first = submitted.unique("call_index", keep="first", maintain_order=True)
    launched = first[["call_index", "role"]].hstack(operations[first["op_index"]])
    names = pl.DataFrame(
        {"name": list(timeline.trace.names), "kernel": list(timeline.trace.names.values())},
        schema={"name": operations.schema["name"], "kernel": pl.String},
    )
    reach = pl.col("end_ns").cum_max().shift(1).over("thread")
    outer = (
        timeline.calls.select("thread", "start_ns", "end_ns", "api", api_role="role")
        .with_row_index("call_index")
        .filter((pl.col("start_ns") >= reach).fill_null(value=True) & pl.col("api_role").is_in(_TOLD_APART))
    )
    told = outer.join(launched, on="call_index", how="left", maintain_order="left").join(
        names, on="name", how="left", maintain_order="left"
    )
    graph = pl.col("api_role") == CallRole.LAUNCH_GRAPH
    parts = (
        pl.col("api").cast(pl.String).fill_null(""),
        pl.when(graph).then("role").otherwise("kernel").fill_null(""),
        pl.col("copy_kind").cast(pl.String).fill_null(""),
    )
    return told.select("call_index", "thread", "start_ns", token=pl.concat_str(*parts, separator="|"))


def _names_by_place(named: Timeline, found: Iterable[Stretch]) -> dict[Seam, dict[Tokens, tuple[Names | None, ...]]]:
    """Return the names of each position by stretch and sequence, None where the steps don't agree on them."""
    names = _names(named)
    grouped = defaultdict[Seam, defaultdict[Tokens, list[tuple[int, ...]]]](lambda: defaultdict(list))
    for stretch in found:
        grouped[stretch.seam][stretch.tokens].append(stretch.calls)
    return {
        seam: {
            tokens: tuple(_agreed(names.get(call) for call in column) for column in zip(*rows, strict=True))
            for tokens, rows in sorted(sequences.items(), key=lambda item: -len(item[1]))
        }
        for seam, sequences in grouped.items()
    }


def _agreed(names: Iterable[Names | None]) -> Names | None:
    counted = Counter(names)
    return next(iter(counted)) if len(counted) == 1 else None


def _names(named: Timeline) -> dict[int, Names]:
    """Return the names of each call, innermost first: its call chain, then the ranges open around it."""
    chains = {
        chain: tuple(symbol for symbol in symbols if symbol)
        for chain, symbols in named.trace.frames.sort("callchain", "depth").group_by("callchain").agg("symbol").rows()
    }
    calls = named.calls
    found = [chains.get(chain, ()) for chain in calls["callchain"].to_list()]
    texts = named.ranges.rows["text"].to_list()
    levels = named.ranges.open_at(calls["thread"].to_numpy(), calls["start_ns"].to_numpy())
    stacks = zip(*(level.tolist() for level in reversed(levels)), strict=True) if levels else ((),) * len(calls)
    spoken = (tuple(texts[position] for position in stack if position >= 0) for stack in stacks)
    both = (names + around for names, around in zip(found, spoken, strict=True))
    return {call: names for call, names in enumerate(both) if names}


def _counterparts(tokens: Tokens, known: Mapping[Tokens, tuple[Names | None, ...]]) -> tuple[Names | None, ...]:
    """Return the names of each call of a sequence, from the same sequence or the one most like it."""
    if tokens in known:
        return known[tokens]
    scored = [(SequenceMatcher(None, tokens, other, autojunk=False).ratio(), other) for other in known]
    ratio, other = max(scored, default=(0.0, ()), key=lambda pair: pair[0])
    if ratio < _LEAST_ALIKE:
        return (None,) * len(tokens)
    names = known[other]
    return tuple(None if place is None else names[place] for place in aligned_places(tokens, other))


def aligned_places(tokens: Sequence[str], other: Sequence[str]) -> list[int | None]:
    """Return the place in `other` of each token, where aligning from the front and from the back agree on it."""
    front = _matches(tokens, other)
    back = _matches(tokens[::-1], other[::-1])
    mirrored = {len(tokens) - 1 - a: len(other) - 1 - b for a, b in back.items()}
    return [front[a] if a in front and mirrored.get(a) == front[a] else None for a in range(len(tokens))]


def _matches(tokens: Sequence[str], other: Sequence[str]) -> dict[int, int]:
    """Return the pairs of a longest common subsequence, each token as early in `other` as it can be."""
    length = np.zeros((len(tokens) + 1, len(other) + 1), np.int32)
    for a in range(len(tokens) - 1, -1, -1):
        for b in range(len(other) - 1, -1, -1):
            same = tokens[a] == other[b]
            length[a, b] = length[a + 1, b + 1] + 1 if same else max(length[a + 1, b], length[a, b + 1])
    pairs = dict[int, int]()
    a = b = 0
    while a < len(tokens) and b < len(other):
        if tokens[a] == other[b]:
            pairs[a] = b
            a, b = a + 1, b + 1
        elif length[a + 1, b] >= length[a, b + 1]:
            a += 1
        else:
            b += 1
    return pairs


def _with_chains(timeline: Timeline, found: Mapping[int, Names], calls: int, source: str) -> Trace:
    trace = timeline.trace
    least = int(trace.calls["callchain"].max() or 0) + 1  # type: ignore[arg-type]
    numbers = {names: least + number for number, names in enumerate(dict.fromkeys(found.values()))}
    carried = np.full(len(trace.calls), -1, np.int64)
    carried[list(found)] = [numbers[names] for names in found.values()]
    chain = pl.Series(carried).replace(-1, None)
    frames = [(number, symbol, depth) for names, number in numbers.items() for depth, symbol in enumerate(names)]
    told = f"{len(found):,} of {calls:,} calls have the names of their counterparts in {source}"
    rest = (
        "" if len(found) == calls else "; the others have no counterpart, or one whose names change from step to step"
    )
    note = QualityNote("names-carried", "info", told + rest, len(found))
    return replace(
        trace,
        calls=trace.calls.with_columns(callchain=pl.coalesce("callchain", chain)),
        frames=pl.concat([trace.frames, pl.DataFrame(frames, schema=trace.frames.schema, orient="row")]),
        notes=(*trace.notes, note),
        names_from=source,
    )
