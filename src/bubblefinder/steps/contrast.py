"""Whether longer cycles are the steps, or the shorter ones inside them: by what sets their boundaries apart.

Where shorter cycles are layers, or the drafts of a step, the boundaries at which a longer cycle begins have what the
others lack: the embedding and the head, the token's way to the host, the host's work between two steps. Where the
shorter ones are the steps, all boundaries are alike, but for other batch sizes in turns, or a chore now and then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.steps import thresholds
from bubblefinder.steps.events import COMPUTE, REPLAY, UPLOAD
from bubblefinder.steps.recurrence import alternate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.events import Events


_MOST_LINKS: Final = 2
_MOST_KERNELS: Final = 4
_HOST_NS: Final = 500
"""Added to host work, so that ratios of next to nothing stay small."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """What the boundaries of longer cycles have and the other boundaries of the shorter ones lack, less the reverse.

    Attributes:
        each: shorter cycles in a longer one.
        links: kinds of reads, uploads and waits, by direction or to the byte, whichever tells more.
        kernels: kinds of kernels.
        kernels_back: those that the other boundaries have instead.
        passes: kinds of kernels or graphs that come several times: a forward pass of its own.
        work: host work before the boundary, in multiples of that at the others.
        linked: reads, uploads and waits at the other boundaries.
        graphs: kinds of graphs, where the other boundaries have no graphs, reads, uploads or waits.
        pieces: the shorter cycles are of different graphs, each of which comes once a longer cycle.
        prompt: the uploads at the boundaries are far larger than those at the others.
        target: a graph that takes far longer than the others' comes once a longer cycle.
        hollow: one of the shorter cycles in a longer one does nearly all of its work: the others are none.
        once: several kinds of graphs come once a longer cycle each, and no other: none is that of a step among several.
        cycles: how many longer cycles there are.
        replayed: graphs run at most of the other boundaries.
    """

    each: float
    links: int
    kernels: int
    kernels_back: int
    passes: int
    work: float
    linked: float
    graphs: int
    pieces: bool
    prompt: bool
    target: bool
    hollow: bool
    once: bool
    cycles: int
    replayed: bool

    @property
    def points(self) -> float:
        """How much speaks for the longer cycles; what speaks for the shorter ones is negative."""
        links = thresholds.LINK_POINTS * min(max(self.links, -_MOST_LINKS), _MOST_LINKS)
        kernels = thresholds.KERNEL_POINTS * min(self.kernels, _MOST_KERNELS)
        lacking = thresholds.LACKING_POINTS * min(self.kernels_back, _MOST_KERNELS)
        most = thresholds.MOST_WORK if self.cycles >= thresholds.MANY else thresholds.MOST_WORK_OF_FEW
        work = float(np.clip(np.log(self.work), thresholds.LEAST_WORK, most))
        graphs = thresholds.GRAPH_POINTS * min(self.graphs, 1)
        whole = (thresholds.PREFILL_POINTS if self.prefill else 0) + (thresholds.PIECES_POINTS if self.pieces else 0)
        drafted = (self.target or self.hollow) and self.each <= thresholds.DRAFTS and not self.prompted
        whole += thresholds.TARGET_POINTS if drafted else 0
        return thresholds.BASE_POINTS + links + graphs + kernels - lacking + work + whole

    @property
    def prompted(self) -> bool:
        """Whether the large uploads may be prompts: a grammar uploads a mask of the vocabulary in every step."""
        return self.prompt and not (self.hollow or self.once)

    @property
    def prefill(self) -> bool:
        """Whether the longer cycles are prefills with the steps behind each.

        Of steps that pass nothing between host and GPU that needs a whole pass of several kinds and its prompt: the
        boundaries of layers have sorts of many passes, and uploads.
        """
        if self.linked <= thresholds.LINKED:
            apart = self.replayed or self.each > thresholds.DRAFTS
            return apart and self.prompted and self.passes >= thresholds.PASS_KINDS
        if self.prompted:
            return self.passes > 0 or self.target
        return self.passes > 0 and self.each > thresholds.DRAFTS


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
    each = len(shorter) / len(longer)
    alike, exact = (_present(symbols, edges, major) for symbols in (events.alike, events.exact))
    kernel, link = (_are(events.alike, kind) for kind in (events.what == COMPUTE, events.links))
    to_the_byte = _are(events.exact, events.links)
    linked = float(exact.theirs[to_the_byte].sum())
    host = np.maximum.reduceat(events.host_ns, edges[:-1])
    return Contrast(
        each=each,
        links=max(_net(alike, link, each), _net(exact, to_the_byte, each)),
        kernels=int((alike.more & kernel).sum()),
        kernels_back=int((alike.fewer & kernel).sum()) if each <= thresholds.ALTERNATING else 0,
        passes=_passes(events, shorter, major),
        work=float((np.median(host[major]) + _HOST_NS) / (np.median(host[~major]) + _HOST_NS)),
        linked=linked,
        graphs=_graphs(events, alike, linked),
        pieces=_pieces(events, longer, each),
        prompt=_prompt(events, shorter, longer),
        target=_target(events, shorter, longer),
        hollow=_hollow(events, shorter, longer),
        once=_once(events, longer),
        cycles=len(longer),
        replayed=float(alike.theirs[_are(events.alike, events.what == REPLAY)].sum()) > thresholds.MOSTLY,
    )


def _prompt(events: Events, shorter: Ints, longer: Ints) -> bool:
    """Tell whether one shorter cycle of each longer one uploads far more than is usual: a prompt."""
    uploads = np.where(events.what == UPLOAD, events.size, 0)
    uploaded = np.maximum.reduceat(uploads, np.append(0, shorter))[1:]
    usual = max(float(np.quantile(uploaded, 1 - thresholds.MORE, method="lower")), thresholds.TOKEN_BYTES)
    prompts = shorter[uploaded >= thresholds.PROMPT * usual]
    held = np.unique(np.searchsorted(longer, prompts, side="right"))
    return bool(thresholds.FILLED * len(longer) <= len(held) and len(prompts) * thresholds.FILLED <= len(longer))


def _target(events: Events, shorter: Ints, longer: Ints) -> bool:
    """Tell whether one kind of graph comes once a longer cycle, and others by which it is drafted are far shorter.

    Those come at most of the boundaries that only the shorter cycles have, or once a longer cycle as well: a draft and
    its extension on either side of the target. Batch sizes by turns differ less.
    """
    held = np.diff(np.searchsorted(shorter, longer))
    replays = np.flatnonzero(events.what == REPLAY)
    if not len(held) or np.median(held) < 2:  # noqa: PLR2004 - a draft and its target
        return False
    kinds = [replays[events.alike[replays] == kind] for kind in np.unique(events.alike[replays]).tolist()]
    most = thresholds.MORE * (len(shorter) - len(longer))
    once = [kind for kind in kinds if alternate(longer, kind)]
    often = [kind for kind in kinds if len(kind) >= most and not any(kind is one for one in once)]
    took = events.end_ns - events.start_ns
    lasts = {int(kind[0]): float(np.median(took[kind])) for kind in kinds}
    *others, target = sorted(once, key=lambda kind: lasts[int(kind[0])]) if once else [replays[:0]]
    beside = [drafts for drafts in (often, [*often, *others]) if sum(map(len, drafts)) >= max(most, 1)]
    shorter_ns = [max(lasts[int(kind[0])] for kind in drafts) for drafts in beside]
    return bool(len(target)) and any(
        lasts[int(target[0])] >= thresholds.ANOTHER_SIZE * longest for longest in shorter_ns
    )


def _once(events: Events, longer: Ints) -> bool:
    """Tell whether at least three kinds of graphs come once a longer cycle each, and hardly any other replay."""
    replays = np.flatnonzero(events.what == REPLAY)
    replays = replays[(replays >= longer[0]) & (replays < longer[-1])]
    kinds = [replays[events.alike[replays] == kind] for kind in np.unique(events.alike[replays]).tolist()]
    once = [kind for kind in kinds if alternate(longer, kind)]
    return len(once) >= thresholds.FEWEST and sum(map(len, once)) >= thresholds.BY_TURNS * len(replays)


def _hollow(events: Events, shorter: Ints, longer: Ints) -> bool:
    """Tell whether in most longer cycles one of the shorter ones runs nearly all of its work, and all of its graphs.

    A step that ends in several reads of results is cut by them into its forward pass and next to nothing.
    """
    replayed = events.what == REPLAY
    took = np.where(events.what <= REPLAY, events.end_ns - events.start_ns, 0)
    held = np.searchsorted(longer, shorter, side="right") - 1
    whole = (held >= 0) & (held < len(longer) - 1)
    if not whole.any():
        return False
    edges, held = np.append(shorter, len(events)), held[whole]
    work, graphs = (np.diff(np.append(0, np.cumsum(each))[edges])[whole] for each in (took, replayed))
    total, most, without = (np.zeros(len(longer) - 1) for _ in range(3))
    np.add.at(total, held, work)
    np.maximum.at(most, held, np.where(graphs > 0, work, 0))
    np.add.at(without, held, graphs == 0)
    others = np.bincount(held, minlength=len(total)) - 1
    nearly_all = (most >= thresholds.NEARLY_ALL_WORK * total) & (without == others) & (others > 0)
    return bool(np.mean(nearly_all) >= thresholds.FILLED)


def _graphs(events: Events, alike: _Present, linked: float) -> int:
    """Count the kinds of graphs of the longer cycles' boundaries, where the others have no graphs and no links."""
    graph = _are(events.alike, events.what == REPLAY)
    alone = max(float(alike.theirs[graph].sum()), linked) < thresholds.FEWER
    return int((alike.more & graph).sum()) if alone else 0


def _passes(events: Events, shorter: Ints, major: Bools) -> int:
    """Count the kinds of kernels and graphs that come several times beside the longer cycles' boundaries alone."""
    often = np.zeros(int(events.alike.max()) + 1, np.bool_)
    for side in (0, 1):
        beside = np.zeros(len(shorter) - 1, np.bool_)
        beside[np.flatnonzero(major) + side] = True
        present = _present(events.alike, shorter, beside)
        often |= (present.often >= thresholds.MORE) & (present.theirs <= thresholds.RARE)
    return int(often[_are(events.alike, events.what <= REPLAY)].sum())


def _middles(events: Events, begins: Ints) -> Ints:
    """Return where half of each cycle's compute is done: what precedes belongs to its begin, the rest to its end."""
    took = np.where(events.what <= REPLAY, events.end_ns - events.start_ns, 0)
    done = np.concatenate(([0], np.cumsum(took)))
    half = (done[begins[:-1]] + done[begins[1:]]) / 2
    return np.clip(np.searchsorted(done, half, side="left"), begins[:-1] + 1, begins[1:]).astype(np.int64)


def _pieces(events: Events, longer: Ints, each: float) -> bool:
    """Tell whether different graphs, one a shorter cycle at least, come once a longer cycle: the pieces of one pass."""
    counts = np.bincount(events.exact[events.what == REPLAY])
    once = np.abs(counts - len(longer)) <= max(1, len(longer) // 10)
    return each > thresholds.ALTERNATING and int(once.sum()) >= each


def _net(present: _Present, chosen: Bools, each: float) -> int:
    """Count what the boundaries have more than the others, less what they lack: batch sizes by turns have both."""
    lack = int((present.fewer & chosen).sum()) if each <= thresholds.ALTERNATING else 0
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
    keys, counts = np.unique(window * kinds + symbols[first:last], return_counts=True)
    symbol, ours = keys % kinds, major[keys // kinds]
    of_major, of_minor = max(int(major.sum()), 1), max(int((~major).sum()), 1)
    share = [np.bincount(symbol[mine], minlength=kinds) / of for mine, of in ((ours, of_major), (~ours, of_minor))]
    several = counts >= thresholds.LAYERS
    often = (
        np.bincount(symbol[ours & several], minlength=kinds) / of_major
        - np.bincount(symbol[~ours & several], minlength=kinds) / of_minor
    )
    return _Present(share[0], share[1], often)
