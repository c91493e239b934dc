"""What part a replay plays in a step: by the NVTX range that launched it, else by its place and length."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import NEVER
from bubblefinder.lookup import NOWHERE, kept, nullable
from bubblefinder.steps import thresholds
from bubblefinder.steps.by_cadence import FOREIGN, Cadence
from bubblefinder.trace.programs import is_llm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.lane import RankWork
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
_NUMBER: Final = re.compile(r"\d+")
_DOTTED: Final = re.compile(r"\w+(?:\.\w+){2,}")


def replay_roles(timeline: Timeline, lane: RankWork, cadence: Cadence) -> list[str]:
    """Return the role of each replay of the lane.

    Places of the cycle are named by the ranges around their launch calls where these tell any two apart;
    what no range names, and everything otherwise, by length. Only a language model drafts and verifies: elsewhere the
    program's own ranges name the places, and the longest is the main one.
    """
    llm = is_llm(timeline.trace)
    telling = _telling if llm else _innermost
    stacks = _stacks(timeline, lane, cadence)
    told = _by_nvtx(stacks, cadence, telling)
    shaped = _by_shape(lane, cadence) if llm else _by_length(lane, cadence)
    apart = cadence.period == 1 or len(set(told)) > 1
    names = [name or shape for name, shape in zip(told, shaped, strict=True)] if apart else shaped
    foreign = iter(_of_foreign(stacks, telling) if llm else ())
    return [next(foreign, FOREIGN_ROLE) if phase == FOREIGN else names[phase] for phase in cadence.phases.tolist()]


def roles_of_strangers(timeline: Timeline, lane: RankWork, roles: pl.DataFrame, window: Ints) -> pl.DataFrame:
    """Return the roles, with names for the replays of steps that have none with a place in the cadence, by their order.

    The pieces of a few steps can make the cadence where most steps are one graph, and no range names that.

    Args:
        timeline: the timeline.
        lane: the lane.
        roles: from `role_frame`.
        window: the step that holds each replay, NOWHERE where none does.
    """
    strange = (roles["role"] == FOREIGN_ROLE).fill_null(value=False).to_numpy()
    held, strangers = (np.bincount(window[mine] + 1) for mine in (slice(None), strange))
    strangers = np.append(strangers, np.zeros(len(held) - len(strangers), np.int64))
    several = np.where(strangers == held, held, 0)
    several[:1] = 0
    if not several.any():
        return roles
    usual = int(np.bincount(several[several > 0]).argmax())
    mine = np.flatnonzero(several[window + 1] == usual)
    phases = np.full(len(window), FOREIGN)
    phases[mine] = mine - mine[np.searchsorted(window[mine], window[mine])]
    cadence = Cadence(usual, 1.0, phases, mine[:0])
    named = (_by_shape if is_llm(timeline.trace) else _by_length)(lane, cadence)
    told = roles["role"].to_list()
    for position in mine.tolist():
        told[position] = named[phases[position]]
    return roles.with_columns(role=pl.Series(told, dtype=pl.String))


def word_of(text: str) -> str | None:
    """Return the role that a range's name speaks of, if any; of a function's dotted name its own, then its class.

    The module may be named after anything: ``speculative.eagle_worker.EAGLEWorker.verify`` verifies. So may the class
    of a wrapper: what a ``PrefillWrapper`` plans need not be a prefill.
    """
    if not _DOTTED.fullmatch(text):
        return _spoken(text)
    *_, owner, own = text.split(".")
    role = _spoken(own)
    of_owner = _spoken(owner)
    return role or (of_owner if of_owner != "prefill" else None)


def _spoken(text: str) -> str | None:
    return next((role for role, pattern in _WORDS if pattern.search(text)), None)


def _stacks(timeline: Timeline, lane: RankWork, cadence: Cadence) -> pl.DataFrame:
    """Return each replay's place as `phase` and the names of the ranges around its launch, outermost first.

    Ranges around several places are left out. Without any range, or with a replay whose launch is unknown, no rows.
    """
    ranges = timeline.ranges.rows
    index = lane.replays["call_index"]
    if ranges.is_empty() or index.null_count():
        return pl.DataFrame({"phase": cadence.phases[:0]})
    launches = timeline.calls[index]
    levels = timeline.ranges.open_at(launches["thread"].to_numpy(), launches["start_ns"].to_numpy())
    wide = np.append(_around_several(levels, cadence.phases, ranges["text"]), True)  # NOWHERE's
    around = {str(depth): nullable(np.where(wide[level], NOWHERE, level)) for depth, level in enumerate(levels)}
    return pl.DataFrame({"phase": cadence.phases} | {name: ranges["text"][at] for name, at in around.items()})


def _by_nvtx(stacks: pl.DataFrame, cadence: Cadence, telling: Callable[[Sequence[str]], str | None]) -> list[str]:
    """Return what the ranges around the launch calls call each place of the cycle; empty where they don't."""
    votes = [Counter[str]() for _ in range(cadence.period)]
    alike = kept(stacks, stacks["phase"] != FOREIGN).group_by(pl.all(), maintain_order=True).len()
    for phase, *stack, count in alike.iter_rows():
        votes[phase][telling([text for text in stack if text is not None]) or ""] += count
    return [vote.most_common(1)[0][0] if vote else "" for vote in votes]


def _of_foreign(stacks: pl.DataFrame, telling: Callable[[Sequence[str]], str | None]) -> list[str]:
    """Return what the ranges around its own launch call each replay outside the cycle.

    A few steps of many short graphs can make the cycle where most steps are one long graph: that one has a name too.
    """
    return [
        telling([text for text in stack if text is not None]) or FOREIGN_ROLE
        for _, *stack in kept(stacks, stacks["phase"] == FOREIGN).iter_rows()
    ]


def _around_several(levels: Sequence[Ints], phases: Ints, texts: pl.Series) -> Bools:
    """Tell the ranges around launches of several places of the cycle: they name the step, not a part of it.

    So do those of the same name: a step that gave its other graphs up has the launch of one alone.
    """
    low, high = np.full(len(texts), NEVER), np.full(len(texts), -1)
    for level in levels:
        inside = (level >= 0) & (phases != FOREIGN)
        np.minimum.at(low, level[inside], phases[inside])
        np.maximum.at(high, level[inside], phases[inside])
    used = np.flatnonzero(high >= 0)
    names = texts[used].str.replace_all(_NUMBER.pattern, "#")
    around = pl.DataFrame({"name": names, "several": high[used] > low[used]})
    wide = np.zeros(len(texts), bool)
    wide[used] = around.select_seq(
        pl.col("several") | (pl.col("several").mean().over("name") > thresholds.MOSTLY)
    ).to_series()
    return wide


def _telling(stack: Sequence[str]) -> str | None:
    """Return the innermost role that is spoken of; decode, which is any of them, only where there is no other."""
    spoken = [role for text in reversed(stack) if (role := word_of(text))]
    return next((role for role in spoken if role != "decode"), spoken[0] if spoken else None)


def _innermost(stack: Sequence[str]) -> str | None:
    """Return the innermost range, without the numbers that change from step to step."""
    return _NUMBER.sub("#", stack[-1]) if stack else None


def _by_shape(lane: RankWork, cadence: Cadence) -> list[str]:
    """Name the places by length: one that dominates verifies, what precedes it drafts, what follows extends.

    That is how draft / verify / draft-extend loops look; a cycle without such a replay is named decode. Where the cycle
    begins with verify, because the host was longest at work before it, the drafts come last.
    """
    longest = _dominating(lane, cadence)
    if longest is None:
        return ["decode"] * cadence.period
    if longest == 0 and cadence.period > 2:  # noqa: PLR2004 - of one other replay nothing says which it is
        return ["verify", "draft-extend"] + ["draft"] * (cadence.period - 2)
    return ["draft"] * longest + ["verify"] + ["draft-extend"] * (cadence.period - longest - 1)


def _by_length(lane: RankWork, cadence: Cadence) -> list[str]:
    """Name the place that dominates the main one, and the others by their order."""
    longest = _dominating(lane, cadence)
    if longest is None:
        return ["decode"] * cadence.period
    others = (f"side {number}" if cadence.period > 2 else "side" for number in range(1, cadence.period))  # noqa: PLR2004
    return ["main" if place == longest else next(others) for place in range(cadence.period)]


def _dominating(lane: RankWork, cadence: Cadence) -> int | None:
    """Return the place of the cycle whose replays are far longer than the others'; None where there is none."""
    if cadence.period == 1 or cadence.period > thresholds.PIECES:
        return None
    lengths = (lane.replays["end_ns"] - lane.replays["start_ns"]).to_numpy()
    of_place = [lengths[cadence.phases == place] for place in range(cadence.period)]
    medians = np.array([np.median(found) if len(found) else 0.0 for found in of_place])
    longest = int(np.argmax(medians))
    return longest if medians[longest] >= thresholds.DOMINANT * np.delete(medians, longest).max() else None


def role_frame(lane: RankWork, roles: list[str], cadence: Cadence) -> pl.DataFrame:
    """Return replay_index, role and position (place in the cycle, null for foreign replays)."""
    return pl.DataFrame(
        {
            "replay_index": lane.replays["replay_index"],
            "role": pl.Series(roles, dtype=pl.String),
            "position": nullable(cadence.phases).cast(pl.Int64),
        },
    )
