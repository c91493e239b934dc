"""What the windows of a lane compute, and which of it is foreign to its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.intervals import last_before, overlap_with, tallied_in, union
from bubblefinder.steps import thresholds
from bubblefinder.steps.events import COMPUTE, REPLAY, largest_uploads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.events import Events

_VALUES = ("start_ns", "end_ns", "alike", "exact", "what", "inside")


@dataclass(frozen=True, slots=True)
class Content:
    """The compute of a lane in the order of the GPU, and the windows it falls into.

    Attributes:
        starts, ends: of the windows; the last is the tail.
        begin_ns, end_ns, window: one value an event that computes; window -1 before the first step.
        alike: what is like it, see `Events`.
        foreign: the event is of a kind that few windows have, or of prefills without such: of a graph that few have.
        usual: kinds that most windows have.
        own: kinds that more than a few windows have.
        prefill: windows with work that is not a decode step's.
    """

    starts: Ints
    ends: Ints
    begin_ns: Ints
    end_ns: Ints
    window: Ints
    alike: Ints
    foreign: Bools
    usual: Ints
    own: Ints
    prefill: Bools


def content_of(events: Events, starts: Ints, ends: Ints) -> Content:
    """Return what the windows compute.

    A window carries prefill work where kinds of kernels or graphs that few windows have run for a quarter of a usual
    step: beside all that a step does; instead of it, kernel by kernel, far longer or with a prompt; or as half of far
    longer work, or of what steps do by graphs.
    Busy time alone tells nothing: a step whose own kernel was slow is a slow step. A larger batch brings other graphs
    and kernels instead of the usual ones, and takes little longer. A step that gave a graph up runs its kernels one by
    one, for about as long, and no prompt arrives; those that come with a prompt are a prefill's.
    """
    computes = np.flatnonzero(events.what <= REPLAY)
    computes = computes[np.argsort(events.start_ns[computes], kind="stable")]
    begin, end, alike, exact, what, inside = (getattr(events, name)[computes] for name in _VALUES)
    window = last_before(begin, starts)
    first = int(np.searchsorted(window, 0))
    holder, kind, _ = tallied_in(window[first:], alike[first:])
    share = np.bincount(kind, minlength=int(alike.max(initial=0)) + 1) / len(starts)
    usual = np.flatnonzero(share >= thresholds.USUAL)
    uploads, usually = _uploads(events, starts)
    prompt = uploads >= thresholds.PROMPT * usually
    shares, graphs, begun = share[alike], np.flatnonzero(what == REPLAY), window >= 0
    foreign = (shares <= thresholds.RARE) & begun & ~inside
    shares[graphs] = _shares(exact[graphs], window[graphs], len(starts))
    strange = (shares <= thresholds.RARE) & begun & (~inside | prompt[window])
    own = np.flatnonzero(share > thresholds.RARE)
    chosen = (slice(None), foreign, foreign & (what == COMPUTE), graphs)
    busy, of_foreign, eager, replayed = (overlap_with(starts, ends, union(begin[mine], end[mine])) for mine in chosen)
    lacking = _lacking(holder, kind, usual, len(starts))
    far = busy > thresholds.FAR_MORE * float(np.median(busy))
    beside = lacking <= thresholds.NONE_LACKING
    instead = (lacking >= thresholds.ALL_LACKING) & (far | (eager >= thresholds.ALL_LACKING * busy))
    mixed = far & (of_foreign >= thresholds.HALF * busy)
    counts, strangers = (np.bincount(rows, minlength=len(starts)) for rows in (window[first:], window[strange]))
    replaced = strangers >= thresholds.HALF * np.maximum(counts, 1)
    rewritten = replaced & (far | prompt)
    beside_graphs = (eager >= thresholds.HALF * busy) & (np.median(replayed) >= thresholds.HALF * np.median(busy))
    worth = of_foreign > thresholds.WORTH * np.median(ends - starts)
    told = np.mean(counts > 0) >= thresholds.HALF
    prefill = ((worth & (beside | instead | mixed | beside_graphs)) | rewritten) & told
    prefill &= far | ~_in_a_row(prefill & ~far)
    by_kernels = _lacking(holder, kind, usual[np.isin(usual, alike[graphs])], len(starts)) > 0
    prefill &= ~(by_kernels & (uploads <= usually) & _about_as_long(busy))
    untold = np.bincount(window[foreign], minlength=len(starts)) == 0
    foreign |= strange & (prefill & untold)[window]
    return Content(starts, ends, begin, end, window, alike, foreign, usual, own, prefill)


def _uploads(events: Events, starts: Ints) -> tuple[Ints, float]:
    """Return the largest upload of each window, and how large it usually is, at least a few ids."""
    size = largest_uploads(events, starts)
    return size, max(float(np.median(size)), thresholds.TOKEN_BYTES)


def _about_as_long(busy: Ints) -> Bools:
    """Tell which windows are busy about as long as usual."""
    ratio = busy / max(float(np.median(busy)), 1)
    return np.asarray((ratio <= thresholds.LENGTH_RATIO) & (ratio >= 1 / thresholds.LENGTH_RATIO), np.bool_)


def _in_a_row(chosen: Bools) -> Bools:
    """Tell which windows are of a run as long as a regime's: steps that run in another way, no prefills."""
    bounds = np.concatenate(([0], np.flatnonzero(np.diff(chosen)) + 1, [len(chosen)]))
    lengths = np.repeat(np.diff(bounds), np.diff(bounds))
    return np.asarray(chosen & (lengths >= thresholds.REGIME), np.bool_)


def _shares(graphs: Ints, window: Ints, windows: int) -> NDArray[np.float64]:
    """Return for each replay the share of the windows that have its very graph."""
    _, graph, _ = tallied_in(window[window >= 0], graphs[window >= 0])
    return (np.bincount(graph, minlength=int(graphs.max(initial=0)) + 1) / windows)[graphs]


def _lacking(holder: Ints, kind: Ints, usual: Ints, windows: int) -> NDArray[np.float64]:
    """Return the share of the usual kinds that each window lacks, by which window has which kind."""
    if not len(usual):
        return np.full(windows, np.nan)
    return 1 - np.bincount(holder[np.isin(kind, usual)], minlength=windows) / len(usual)
