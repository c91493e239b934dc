"""Whether longer cycles are the steps, or the shorter ones inside them: by what sets their boundaries apart.

Where shorter cycles are layers, or the drafts of a step, the boundaries at which a longer cycle begins have what the
others lack: the embedding and the head, the token's way to the host, the host's work between two steps. Where the
shorter ones are the steps, all boundaries are alike, but for other batch sizes in turns, or a chore now and then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.intervals import median, tallied_in
from bubblefinder.steps import thresholds
from bubblefinder.steps.events import COMPUTE, REPLAY
from bubblefinder.steps.passes import Passes
from bubblefinder.steps.recurrence import counted
from bubblefinder.steps.turns import Turns, shares_work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.events import Events


_MOST_LINKS: Final = 2
_MOST_KERNELS: Final = 8
_HOST_NS: Final = 500
"""Added to host work, so that ratios of next to nothing stay small."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """What the boundaries of longer cycles have and the other boundaries of the shorter ones lack, less the reverse.

    Attributes:
        each: shorter cycles in a longer one.
        links: kinds of reads, uploads and waits, by direction or to the byte, whichever tells more; at least one, if
            the longer cycles have links and some of the shorter have none.
        kernels: kinds of kernels.
        kernels_back: those that the other boundaries have instead.
        passes: what runs there as a forward pass of its own.
        turns: whether the shorter cycles do different work.
        work: host work before the boundary, in multiples of that at the others.
        linked: reads, uploads and waits at the other boundaries.
        answers: those of them that may give the host a result: reads and waits.
        graphs: kinds of graphs, where the other boundaries have no graphs, reads, uploads or waits.
        pieces: the shorter cycles are of different graphs, each of which comes once a longer cycle.
        cycles: how many longer cycles there are.
        replayed: graphs run at most of the other boundaries.
        given_up: shorter cycles beside the boundaries have kernels for a graph of the others.
        alike: nothing that computes comes at the boundaries alone.
        uneven: the longer cycles hold numbers of shorter ones that differ by more than their median.
    """

    each: float
    links: int
    kernels: int
    kernels_back: int
    passes: Passes
    turns: Turns
    work: float
    linked: float
    answers: float
    graphs: int
    pieces: bool
    cycles: int
    replayed: bool
    given_up: bool
    alike: bool
    uneven: bool

    @property
    def points(self) -> float:
        """How much speaks for the longer cycles; what speaks for the shorter ones is negative."""
        prefill = self.prefill
        links = 0.0 if self.chore else thresholds.LINK_POINTS * min(max(self.links, -_MOST_LINKS), _MOST_LINKS)
        kernels = 0 if prefill else thresholds.KERNEL_POINTS * min(self.kernels, _MOST_KERNELS)
        lacking = thresholds.LACKING_POINTS * min(self.kernels_back, _MOST_KERNELS)
        most = thresholds.MOST_WORK if self.cycles >= thresholds.MANY else thresholds.MOST_WORK_OF_FEW
        work = min(max(float(np.log(self.work)), thresholds.LEAST_WORK), most)
        graphs = thresholds.GRAPH_POINTS * min(self.graphs, 1)
        whole = (thresholds.PREFILL_POINTS if prefill else 0) + (thresholds.PIECES_POINTS if self.pieces else 0)
        whole += thresholds.TARGET_POINTS if self.of_parts else 0
        points = thresholds.BASE_POINTS + links + graphs + kernels - lacking + work + whole
        if self.answers > thresholds.LINKED and self.turns.whole and not self.turns.different:
            points = min(points, thresholds.BASE_POINTS)
        if self.untold or self.rounds:
            points = min(max(points, -thresholds.UNTOLD), thresholds.UNTOLD)
        return min(points, thresholds.DOUBTED) if self.short_prompt else points

    @property
    def of_parts(self) -> bool:
        """Whether the shorter cycles are parts of a step, as a target and its drafts are."""
        few = self.each <= thresholds.DRAFTS and not (self.given_up or self.passes.prompt)
        return (self.passes.drafted(self.each) and not self.turns.apart) or (few and self.turns.different)

    @property
    def rounds(self) -> bool:
        """Whether the longer cycles may be what the host does for several steps, or one step of as many passes."""
        return self.alike and self.answers <= thresholds.LINKED and self.turns.whole

    @property
    def untold(self) -> bool:
        """Whether the shorter cycles may be parts of a step as well as steps of two batch sizes."""
        linked = (self.links <= 0 or self.chore) and self.linked > thresholds.LINKED
        if not linked or self.each > thresholds.DRAFTS or self.given_up or self.passes.prompt:
            return False
        told = self.passes.target and not self.turns.apart
        return not told and self.turns.untold

    @property
    def chore(self) -> bool:
        """Whether all that comes at the boundaries of a few long, or quite uneven, cycles is a copy or a wait.

        That recurs by chance.
        """
        few = self.cycles < thresholds.MANY and self.each > thresholds.ALTERNATING and self.work <= 1
        return (few or self.uneven) and self.links > 0 and not (self.kernels or self.graphs or self.pieces)

    @property
    def short_prompt(self) -> bool:
        """Whether the longer cycles may be short prompts with the steps behind each, or a target with its drafts."""
        return self.linked > thresholds.LINKED and self.each <= thresholds.DRAFTS and self.passes.fuller

    @property
    def prefill(self) -> bool:
        """Whether the longer cycles are prefills with the steps behind each."""
        return self.passes.prefill(self.each, self.linked, replayed=self.replayed)


@dataclass(frozen=True, slots=True)
class _Present:
    """Share of some windows and of the others in which each symbol comes, and comes several times."""

    ours: NDArray[np.float64]
    theirs: NDArray[np.float64]
    often: NDArray[np.float64]

    @property
    def more(self) -> Bools:
        return self.ours - self.theirs >= thresholds.MORE

    @property
    def fewer(self) -> Bools:
        return self.theirs - self.ours >= thresholds.FEWER


def contrast(events: Events, shorter: Ints, longer: Ints) -> Contrast | None:
    """Compare boundaries and what is around them, half a shorter cycle to each side; null if none can be compared."""
    edges = _middles(events, shorter)
    major = np.zeros(max(len(edges) - 1, 0), np.bool_)
    place = np.searchsorted(edges, longer, side="right") - 1
    major[place[(place >= 0) & (place < len(major))]] = True
    if not major.any() or major.all():
        return None
    held = np.diff(np.searchsorted(shorter, longer))
    each = float(np.mean(held)) if len(held) else len(shorter) / len(longer)
    alike, exact = (_present(symbols, edges, major) for symbols in (events.alike, events.exact))
    kernel, link = (_are(events.alike, kind) for kind in (events.what == COMPUTE, events.links))
    to_the_byte = _are(events.exact, events.links)
    linked, answers = (float(exact.theirs[one].sum()) for one in (to_the_byte, _are(events.exact, events.waits)))
    host = np.maximum.reduceat(events.host_ns, edges[:-1])
    beside = _beside(events, shorter, major)
    by_turns = each <= thresholds.ALTERNATING and not ((alike.more | alike.fewer) & link).any()
    by_turns = by_turns and shares_work(events, shorter)
    graph_less = _given_up(events, beside)
    given_up = by_turns and graph_less
    links = max(_net(alike, link, by_turns=by_turns), _net(exact, to_the_byte, by_turns=by_turns))
    return Contrast(
        each=each,
        links=1 if links < 1 and _linked(events, longer) and not _linked(events, shorter) else links,
        kernels=0 if given_up else int((alike.more & kernel).sum()),
        kernels_back=_lacking(alike, beside, kernel) if by_turns else 0,
        passes=Passes(events, shorter, longer, 0 if given_up else _passes(events, beside)),
        turns=Turns(events, shorter, longer),
        work=(median(host[major]) + _HOST_NS) / (median(host[~major]) + _HOST_NS),
        linked=linked,
        answers=answers,
        graphs=_graphs(events, alike, linked),
        pieces=_pieces(events, longer, each),
        cycles=len(longer),
        replayed=float(alike.theirs[_are(events.alike, events.what == REPLAY)].sum()) > thresholds.MOSTLY,
        given_up=graph_less,
        alike=not (alike.more & _are(events.alike, events.what <= REPLAY)).any(),
        uneven=len(held) > 0 and bool(np.ptp(held) > median(held)),
    )


def _linked(events: Events, begins: Ints) -> bool:
    """Tell whether nearly every cycle passes something between host and GPU, wherever it does so."""
    held = np.diff(counted(events.links)[begins])
    return bool(len(held)) and bool(np.mean(held > 0) >= thresholds.FILLED)


def _graphs(events: Events, alike: _Present, linked: float) -> int:
    """Count the kinds of graphs of the longer cycles' boundaries, where the others have no graphs and no links."""
    graph = _are(events.alike, events.what == REPLAY)
    alone = max(float(alike.theirs[graph].sum()), linked) < thresholds.FEWER
    return int((alike.more & graph).sum()) if alone else 0


def _beside(events: Events, shorter: Ints, major: Bools) -> list[_Present]:
    """Return what the shorter cycles before and behind the longer cycles' boundaries have."""
    found = []
    for side in (0, 1):
        mine = np.zeros(len(shorter) - 1, np.bool_)
        mine[np.flatnonzero(major) + side] = True
        found.append(_present(events.alike, shorter, mine))
    return found


def _passes(events: Events, beside: list[_Present]) -> int:
    """Count the kinds of kernels and graphs that come several times beside the longer cycles' boundaries alone."""
    often = [(one.often >= thresholds.MORE) & (one.theirs <= thresholds.RARE) for one in beside]
    return int((often[0] | often[1])[_are(events.alike, events.what <= REPLAY)].sum())


def _given_up(events: Events, beside: list[_Present]) -> bool:
    """Tell whether cycles beside the boundaries have kernels for a graph of the others: these tell nothing."""
    graph, kernel = (_are(events.alike, events.what == what) for what in (REPLAY, COMPUTE))
    instead = [(one.fewer & graph, one.more & kernel, one.more & graph) for one in beside]
    return any(graphs.any() and kernels.any() and not others.any() for graphs, kernels, others in instead)


def _lacking(present: _Present, beside: list[_Present], chosen: Bools) -> int:
    """Count what the boundaries lack, and a whole cycle beside them: what only lies further off isn't lacking."""
    return int((present.fewer & (beside[0].fewer | beside[1].fewer) & chosen).sum())


def _middles(events: Events, begins: Ints) -> Ints:
    """Return where half of each cycle's compute is done: what precedes belongs to its begin, the rest to its end."""
    took = np.where(events.what <= REPLAY, events.end_ns - events.start_ns, 0)
    done = np.concatenate(([0], np.cumsum(took)))
    half = (done[begins[:-1]] + done[begins[1:]]) / 2
    return np.clip(np.searchsorted(done, half, side="left"), begins[:-1] + 1, begins[1:]).astype(np.int64)


def _pieces(events: Events, longer: Ints, each: float) -> bool:
    """Tell whether different graphs, one a shorter cycle at least, come once a longer cycle: the pieces of one pass."""
    if each <= thresholds.ALTERNATING:
        return False
    counts = np.bincount(events.exact[events.what == REPLAY])
    once = (counts > 0) & (np.abs(counts - len(longer)) <= max(1, len(longer) // 10))
    return int(once.sum()) >= each


def _net(present: _Present, chosen: Bools, *, by_turns: bool) -> int:
    """Count what the boundaries have more than the others, less what they lack: batch sizes by turns have both."""
    lack = int((present.fewer & chosen).sum()) if by_turns else 0
    return int((present.more & chosen).sum()) - lack


def _are(symbols: Ints, chosen: Bools) -> Bools:
    """Tell which symbols are of a kind."""
    found = np.zeros(int(symbols.max()) + 1, np.bool_)
    found[symbols[chosen]] = True
    return found


def _present(symbols: Ints, edges: Ints, major: Bools) -> _Present:
    """Count, for each symbol, the windows between edges that have it."""
    kinds, first, last = int(symbols.max()) + 1, edges[0], edges[-1]
    window = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    window, symbol, counts = tallied_in(window, symbols[first:last])
    ours = major[window]
    of_major, of_minor = max(int(major.sum()), 1), max(int((~major).sum()), 1)
    share = [np.bincount(symbol[mine], minlength=kinds) / of for mine, of in ((ours, of_major), (~ours, of_minor))]
    several = counts >= thresholds.LAYERS
    often = (
        np.bincount(symbol[ours & several], minlength=kinds) / of_major
        - np.bincount(symbol[~ours & several], minlength=kinds) / of_minor
    )
    return _Present(share[0], share[1], often)
