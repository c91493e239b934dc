"""Whether a pass of its own runs where longer cycles begin, and whose: a prefill's, or the target's of some drafts.

Both come once a longer cycle, in kernels that the shorter ones lack. A prefill uploads its prompt and runs the layers
that a step runs; a target has more layers than its draft, and takes no more ids from the host than any step does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.intervals import median, places_of
from bubblefinder.steps import thresholds
from bubblefinder.steps.events import COMPUTE, REPLAY, UPLOAD
from bubblefinder.steps.recurrence import alternate
from bubblefinder.steps.turns import in_each, once_each, whole_passes

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.events import Events


@dataclass(frozen=True, slots=True)
class Passes:
    """What runs where longer cycles begin, and what was uploaded for it.

    Attributes:
        kinds: kinds of kernels or graphs that come several times there, and hardly elsewhere.
        prompt: one shorter cycle of each longer one uploads far more than is usual, as prompts are and a grammar's mask
            of the vocabulary isn't, which is uploaded in every step.
        fuller: it uploads more than usual, where each of the others uploads as well: so does a short prompt. Not where
            the graphs tell a draft and its target, whose plan of attention is larger.
        uploads: something is uploaded in nearly each longer cycle: a prompt would have been.
        target: a graph that takes far longer than the others' comes once a longer cycle, or one of the shorter cycles
            does nearly all of its work: the others are none.
        larger: one shorter cycle of each longer one launches far more kernels than is usual.
        whole: beside prompts, shorter cycles are forward passes by themselves.
        once: hardly any graph is replayed but those that come once a longer cycle.
        slight: the usual shorter cycles run no graphs, few kernels beside the longest, and little of all that is
            computed: they are no passes of the same layers.
    """

    kinds: int
    prompt: bool
    fuller: bool
    uploads: bool
    target: bool
    larger: bool
    whole: bool
    once: bool
    slight: bool

    @classmethod
    def of(cls, events: Events, shorter: Ints, longer: Ints, kinds: int) -> Passes:
        """Look at shorter cycles and at the longer ones that they make up."""
        uploads = np.maximum.reduceat(np.where(events.what == UPLOAD, events.size, 0), shorter)
        own = float(np.quantile(uploads, 1 - thresholds.MORE, method="lower"))
        usual = max(own, thresholds.TOKEN_BYTES)
        hollow = _hollow(events, shorter, longer)
        prompt = once_each(shorter[uploads >= thresholds.PROMPT * usual], longer)
        once = _once(events, longer)
        whole_step = hollow or len(once) >= thresholds.FEWEST
        prompt = prompt and not whole_step
        more = once_each(shorter[uploads >= thresholds.LENGTH_RATIO * usual], longer)
        fuller = own > 0 and more and not (whole_step or _far_apart(once))
        launched = np.add.reduceat(events.what == COMPUTE, shorter, dtype=np.int64)
        replayed = np.add.reduceat(events.what == REPLAY, shorter, dtype=np.int64)
        few = np.quantile(launched, thresholds.RARE, method="lower")
        many = launched >= thresholds.LENGTH_RATIO * few
        slight = not np.median(replayed) and _slight(events, shorter, longer, launched)
        return cls(
            kinds=kinds,
            prompt=prompt,
            fuller=fuller,
            uploads=in_each(shorter[uploads > 0], longer),
            target=hollow or _target(events, shorter, longer),
            larger=not np.median(replayed) and once_each(shorter[many], longer),
            whole=prompt and kinds > 0 and whole_passes(events, shorter),
            once=len(once) > 0,
            slight=slight,
        )

    def drafted(self, each: float) -> bool:
        """Tell whether a target runs behind `each` - 1 drafts."""
        if self.prompt:
            return False
        passed = self.larger and self.kinds >= thresholds.PASS_KINDS
        return (self.target or passed) if each <= thresholds.DRAFTS else passed and self.uploads

    def prefill(self, each: float, linked: float, *, replayed: bool) -> bool:
        """Tell whether the longer cycles are prefills with `each` steps behind them.

        Of steps that pass nothing between host and GPU that needs a whole pass of several kinds and its prompt: the
        boundaries of layers have sorts of many passes, and uploads. Steps behind a prefill replay their graphs, if any
        are replayed: where each comes once a longer cycle, that is the step.
        """
        if self.slight:
            return False
        if linked <= thresholds.LINKED:
            apart = replayed or (each > thresholds.DRAFTS and self.whole)
            return apart and self.prompt and self.kinds >= thresholds.PASS_KINDS
        if self.prompt:
            return self.kinds > 0 or self.target
        return self.kinds > 0 and each > thresholds.DRAFTS and not (self.larger or self.once)


def _slight(events: Events, shorter: Ints, longer: Ints, launched: Ints) -> bool:
    """Tell whether usual cycles launch few kernels beside the longest of each longer one, which compute nearly all.

    A step that is a single kernel launches few as well, but computes as long as its layers do.
    """
    edges = np.minimum(np.searchsorted(shorter, longer), len(shorter) - 1)
    few = launched <= thresholds.SLIGHT * np.median(np.maximum.reduceat(launched, edges))
    took = np.add.reduceat(np.where(events.what == COMPUTE, events.end_ns - events.start_ns, 0), shorter)
    return bool(np.mean(few) > thresholds.MOSTLY and took[few].sum() <= thresholds.SLIGHT * took.sum())


def _target(events: Events, shorter: Ints, longer: Ints) -> bool:
    """Tell whether one kind of graph comes once a longer cycle, and others by which it is drafted are shorter.

    Those come at most of the boundaries that only the shorter cycles have, or once a longer cycle as well: a draft and
    its extension on either side of the target. They are far shorter where no nodes tell kinds apart, since batch sizes
    by turns differ less.
    """
    held = np.diff(np.searchsorted(shorter, longer))
    replays = np.flatnonzero(events.what == REPLAY)
    if not len(held) or np.median(held) < 2:  # noqa: PLR2004 - a draft and its target
        return False
    graphs = _graphs(events, replays, longer)
    once = sorted((graph for graph in graphs if graph.is_once), key=lambda graph: graph.took_ns)
    if not once:
        return False
    *others, target = once
    most = thresholds.MORE * (len(shorter) - len(longer))
    often = [graph for graph in graphs if graph.count >= most and not graph.is_once]
    beside = [drafts for drafts in (often, [*often, *others]) if sum(one.count for one in drafts) >= max(most, 1)]
    longest = (max(graph.took_ns for graph in drafts) for drafts in beside)
    times = 1 if events.nodes[replays].all() else thresholds.ANOTHER_SIZE
    return any(target.took_ns > times * draft_ns for draft_ns in longest)


@dataclass(frozen=True, slots=True)
class _Graph:
    """Graphs of one kind: how many, how long they take, and whether they come once a longer cycle."""

    count: int
    took_ns: float
    is_once: bool


def _graphs(events: Events, replays: Ints, longer: Ints) -> list[_Graph]:
    """Return the kinds of graphs that are replayed."""
    took = (events.end_ns - events.start_ns)[replays]
    places = places_of(events.alike[replays]) if len(replays) else []
    return [_Graph(len(at), median(took[at]), alternate(longer, replays[at])) for at in places]


def _once(events: Events, longer: Ints) -> list[float]:
    """Return how long the kinds of graphs take that come once a longer cycle each, in ns, if hardly any other replays.

    They are the graphs of one step, where they are at least three; a prompt's and that of the steps are two.
    """
    replays = np.flatnonzero(events.what == REPLAY)
    replays = replays[(replays >= longer[0]) & (replays < longer[-1])]
    once = [graph for graph in _graphs(events, replays, longer) if graph.is_once]
    often = sum(graph.count for graph in once) >= thresholds.BY_TURNS * len(replays)
    return [graph.took_ns for graph in once] if often else []


def _far_apart(lasts: list[float]) -> bool:
    """Tell whether graphs by turns are a draft and its target, by how long they take.

    Behind prompts now and then more than one step would follow, and another batch size makes no graph so much longer.
    """
    return len(lasts) > 1 and max(lasts) >= thresholds.ANOTHER_SIZE * min(lasts)


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
