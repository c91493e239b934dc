"""What part a replay plays in a step: by the NVTX range that launched it, else by its place and length."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.steps.by_cadence import FOREIGN
from bubblefinder.timeline.ranges import open_ranges, user_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.intervals import Ints
    from bubblefinder.steps.by_cadence import Cadence
    from bubblefinder.steps.lane import Lane
    from bubblefinder.timeline.model import Timeline

FOREIGN_ROLE: Final = "other"
_WORDS: Final = (
    ("draft-extend", re.compile(r"draft.?extend|extend.?after.?(decode|verify)", re.IGNORECASE)),
    ("draft", re.compile(r"draft|propose", re.IGNORECASE)),
    ("verify", re.compile(r"verif", re.IGNORECASE)),
    ("draft-extend", re.compile(r"\bextend\b", re.IGNORECASE)),
    ("sample", re.compile(r"sampl", re.IGNORECASE)),
    ("prefill", re.compile(r"prefill", re.IGNORECASE)),
    ("decode", re.compile(r"decode|generation|forward", re.IGNORECASE)),
)
_DOMINANT: Final = 1.5
_PIECES: Final = 8


def replay_roles(timeline: Timeline, lane: Lane, cadence: Cadence) -> list[str]:
    """Return the role of each replay of the lane."""
    names = _by_nvtx(timeline, lane, cadence) or _by_shape(lane, cadence)
    return [FOREIGN_ROLE if phase == FOREIGN else names[phase] for phase in cadence.phases.tolist()]


def word_of(text: str) -> str | None:
    """Return the role that a range's name speaks of, if any."""
    return next((role for role, pattern in _WORDS if pattern.search(text)), None)


def _by_nvtx(timeline: Timeline, lane: Lane, cadence: Cadence) -> list[str] | None:
    """Name the places by the innermost telling range around their launch calls; none unless that tells them apart."""
    ranges = user_ranges(timeline.trace.nvtx)
    index = lane.replays["call_index"]
    if ranges.is_empty() or index.null_count():
        return None
    launches = timeline.calls[index]
    votes = [Counter[str]() for _ in range(cadence.period)]
    levels = list(open_ranges(ranges, launches["thread"].to_numpy(), launches["start_ns"].to_numpy()))
    texts = ranges["text"].to_list()
    for position, phase in enumerate(cadence.phases.tolist()):
        if phase != FOREIGN:
            votes[phase][_telling([texts[level[position]] for level in levels if level[position] >= 0]) or ""] += 1
    names = [vote.most_common(1)[0][0] if vote else "" for vote in votes]
    told_apart = cadence.period == 1 or len(set(names)) > 1
    return names if all(names) and told_apart else None


def _telling(stack: Sequence[str]) -> str | None:
    return next((role for text in reversed(stack) if (role := word_of(text))), None)


def _by_shape(lane: Lane, cadence: Cadence) -> list[str]:
    """Name the places by length: one that dominates verifies, what precedes it drafts, what follows extends.

    That is how draft / verify / draft-extend loops look; a cycle without such a replay is named decode.
    """
    if cadence.period == 1:
        return ["decode"]
    lengths = (lane.replays["end_ns"] - lane.replays["start_ns"]).to_numpy()
    of_place = [lengths[cadence.phases == place] for place in range(cadence.period)]
    medians = np.array([np.median(found) if len(found) else 0.0 for found in of_place])
    longest = int(np.argmax(medians))
    others = np.delete(medians, longest)
    if cadence.period > _PIECES or medians[longest] < _DOMINANT * others.max():
        return ["decode"] * cadence.period
    return ["draft"] * longest + ["verify"] + ["draft-extend"] * (cadence.period - longest - 1)


def role_frame(lane: Lane, roles: list[str], cadence: Cadence) -> pl.DataFrame:
    """Return replay_index, role and position (place in the cycle, null for foreign replays)."""
    return pl.DataFrame(
        {
            "replay_index": lane.replays["replay_index"],
            "role": pl.Series(roles, dtype=pl.String),
            "position": _nullable(cadence.phases),
        },
    )


def _nullable(phases: Ints) -> pl.Series:
    return pl.Series(phases).set(pl.Series(phases == FOREIGN), None)
