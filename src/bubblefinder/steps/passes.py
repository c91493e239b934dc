"""Whether a pass of its own runs where longer cycles begin, and whose: a prefill's, or the target's of some drafts.

Both come once a longer cycle, in kernels that the shorter ones lack. A prefill uploads its prompt and runs the layers
that a step runs; a target has more layers than its draft, and takes no more ids from the host than any step does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.intervals import lower_quantile, median, places_of
from bubblefinder.steps import thresholds
from bubblefinder.steps.events import COMPUTE, REPLAY, UPLOAD
from bubblefinder.steps.recurrence import alternate
from bubblefinder.steps.turns import in_each, once_each, whole_passes

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.events import Events


@dataclass(frozen=True, eq=False)
class Passes:
    """What runs where longer cycles begin, and what was uploaded for it; looked at when it is first asked for.

    Attributes:
        events, shorter, longer: shorter cycles of these, and the longer ones that they make up.
        kinds: kinds of kernels or graphs that come several times there, and hardly elsewhere.
    """

    events: Events
    shorter: Ints
    longer: Ints
    kinds: int

    @cached_property
    def prompt(self) -> bool:
        """Whether one shorter cycle of each longer one uploads far more than is usual, as prompts are.

        A grammar's mask of the vocabulary isn't, which is uploaded in every step.
        """
        usual = max(self._own_upload, thresholds.TOKEN_BYTES)
        return once_each(self.shorter[self._uploads >= thresholds.PROMPT * usual], self.longer) and not self._whole_step

    @cached_property
    def fuller(self) -> bool:
        """Whether it uploads more than usual, where each of the others uploads as well: so does a short prompt.

        Not where the graphs tell a draft and its target, whose plan of attention is larger.
        """
        usual = max(self._own_upload, thresholds.TOKEN_BYTES)
        more = self.shorter[self._uploads >= thresholds.LENGTH_RATIO * usual]
        return (
            self._own_upload > 0 and once_each(more, self.longer) and not (self._whole_step or _far_apart(self._once))
        )

    @cached_property
    def uploads(self) -> bool:
        """Whether something is uploaded in nearly each longer cycle: a prompt would have been."""
        return in_each(self.shorter[self._uploads > 0], self.longer)

    @cached_property
    def target(self) -> bool:
        """Whether a graph that takes far longer than the others' comes once a longer cycle.

        Or one of the shorter cycles does nearly all of its work: the others are none.
        """
        return self._hollow or _target(self.events, self.shorter, self.longer)

    @cached_property
    def larger(self) -> bool:
        """Whether one shorter cycle of each longer one launches far more kernels than is usual."""
        many = self._launched >= thresholds.LENGTH_RATIO * lower_quantile(self._launched, thresholds.RARE)
        return not self._replay and once_each(self.shorter[many], self.longer)

    @cached_property
    def slight(self) -> bool:
        """Whether the usual shorter cycles run no graphs, few kernels beside the longest, and little of all compute.

        They are no passes of the same layers.
        """
        return not self._replay and _slight(self.events, self.shorter, self.longer, self._launched)

    @cached_property
    def whole(self) -> bool:
        """Whether beside prompts, shorter cycles are forward passes by themselves."""
        return self.kinds > 0 and self.prompt and whole_passes(self.events, self.shorter)

    @property
    def once(self) -> bool:
        """Whether hardly any graph is replayed but those that come once a longer cycle."""
        return len(self._once) > 0

    @cached_property
    def _launched(self) -> Ints:
        """How many kernels each shorter cycle launches."""
        return np.add.reduceat(self.events.what == COMPUTE, self.shorter, dtype=np.int64)

    @cached_property
    def _replay(self) -> bool:
        """Whether the usual shorter cycle replays a graph."""
        return median(np.add.reduceat(self.events.what == REPLAY, self.shorter, dtype=np.int64)) > 0

    @cached_property
    def _uploads(self) -> Ints:
        """The largest upload of each shorter cycle."""
        uploads = np.where(self.events.what == UPLOAD, self.events.size, 0)
        return np.maximum.reduceat(uploads, self.shorter)

    @cached_property
    def _own_upload(self) -> int:
        """How much a shorter cycle usually uploads."""
        return lower_quantile(self._uploads, 1 - thresholds.MORE)

    @cached_property
    def _once(self) -> list[float]:
        return _once(self.events, self.longer)

    @cached_property
    def _hollow(self) -> bool:
        return _hollow(self.events, self.shorter, self.longer)

    @property
    def _whole_step(self) -> bool:
        """Whether the longer cycles are steps, by their graphs or since all but one of the shorter ones do nothing."""
        return self._hollow or len(self._once) >= thresholds.FEWEST

    def drafted(self, each: float) -> bool:
        """Tell whether a target runs behind `each` - 1 drafts."""
        if self.prompt:
            return False
        passed = self.kinds >= thresholds.PASS_KINDS and self.larger
        return (passed or self.target) if each <= thresholds.DRAFTS else passed and self.uploads

    def prefill(self, each: float, linked: float, *, replayed: bool) -> bool:
        """Tell whether the longer cycles are prefills with `each` steps behind them.

        Of steps that pass nothing between host and GPU that needs a whole pass of several kinds and its prompt: the
        boundaries of layers have sorts of many passes, and uploads. Steps behind a prefill replay their graphs, if any
        are replayed: where each comes once a longer cycle, that is the step.
        """
        if linked <= thresholds.LINKED:
            several = self.kinds >= thresholds.PASS_KINDS
            found = several and (replayed or (each > thresholds.DRAFTS and self.whole)) and self.prompt
        elif self.prompt:
            found = self.kinds > 0 or self.target
        else:
            found = self.kinds > 0 and each > thresholds.DRAFTS and not (self.larger or self.once)
        return found and not self.slight


def _slight(events: Events, shorter: Ints, longer: Ints, launched: Ints) -> bool:
    """Tell whether usual cycles launch few kernels beside the longest of each longer one, which compute nearly all.

    A step that is a single kernel launches few as well, but computes as long as its layers do.
    """
    edges = np.minimum(np.searchsorted(shorter, longer), len(shorter) - 1)
    few = launched <= thresholds.SLIGHT * median(np.maximum.reduceat(launched, edges))
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
    if not len(held) or median(held) < 2:  # noqa: PLR2004 - a draft and its target
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
    times = 1 if events.layers[replays].all() else thresholds.ANOTHER_SIZE
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
