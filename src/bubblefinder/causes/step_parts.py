"""What the rules may look at of the parts of a step: roles, seams, holes, queues and skews, see `causes.facts`."""

from __future__ import annotations

from dataclasses import dataclass

from bubblefinder.causes.evidence import Evidence  # noqa: TC001 - the rules read the annotations
from bubblefinder.causes.launches import PHASE_LAUNCHES
from bubblefinder.timeline.rank import Rank


class OfRank:
    """Facts of one process on one GPU."""

    __slots__ = ()
    gpu: int
    process: int

    @property
    def rank(self) -> Rank:
        """That process on that GPU."""
        return Rank(self.gpu, self.process)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleFacts(OfRank):
    """A role of the step: a replay, or an eager phase (launches between the replays that have no graph).

    Attributes:
        gpu: physical GPU.
        process: process key.
        role: as in `steps.replays`, or the name given to the eager phase.
        eager: whether it runs as single launches.
        siblings_replay: whether at least one other role of the same step is a graph replay.
        replays: the roles of the step that are graph replays.
        per_step_count: replays of the role per step; for an eager phase 1 if it is in every step.
        span_p50_ns: median span of one replay, or of the phase from its first to its last operation.
        span_share: median span times count over the median step.
        step_span_p50_ns: the spans of a step together, the median of the steps with one.
        nodes: median operations in a replay (None in graph mode), or launches of the phase in a step that has it.
        steps: of an eager phase, the steps of this process on this GPU, the first and the tail included; None of a
            replay, as are the next five.
        steps_affected: those with the phase.
        steps_share: the share of the decode steps alone with it.
        instead_of: the replays of which every step with the phase has fewer than most steps without it.
        step_with_p50_ns: median duration of the decode steps with it.
        step_without_p50_ns: that of the decode steps without it; None where all have it.
        idle_p50_ns: idle inside the span per step: intra-graph gaps of a replay; every gap inside an eager phase, of
            the same spans and steps as `step_span_p50_ns`. None where not measured.
        idle_share: that idle over all decode steps, over their total duration.
        gap_p50_ns: median idle between neighbouring operations of one stream inside it; None where not measured.
        kernel_p50_ns: median length of its kernels; None where not measured.
        small_share: share of its kernels that are shorter than 6 us; None where not measured.
        pdl_overlap_share: share of neighbouring kernels of one stream whose second starts before the first ends;
            None where not measured.
        pdl_pairs: the kernels of which the second starts before the first, its predecessor in the stream, has ended:
            ``first and second x count`` with the number in one replay, most frequent first, at most 4.
        pdl_breaks: where some do, the kernels that still wait for their predecessor's end and have the most idle
            before them, in the same form.
        small_runs: the kernels shorter than 6 us that stand beside another such: ``name x count`` texts with the
            number in one replay, costliest first, at most 5.
        tandems: the kernels shorter than 6 us that run one behind the other at least 4 times in a replay, with their
            number there and what fusing them gives a step at most: ``first, second x count: 30 us``, at most 4.
        tandem_ns: what fusing those gives a step at most: the gaps between them and the shorter of each two, less what
            the profiler adds to a kernel; None where there are none.
        tandem_share: that over the median step.
        long_kernels: names of the kernels that take at least 2 % of its busy time each, costliest first, at most
            8; empty where not measured.
        launch_p50_ns: median host time inside its launch calls per step.
        waits: median waits of the launching thread between these calls per step: what a graph can't hold.
        unbroken: of an eager phase, the launches between two such waits: of a phase its launches over its waits and
            one, a median; None for a replay.
        recoverable_ns: of an eager phase that isn't broken into pieces too short for a graph, what a median step would
            lose if it were captured as a graph, by the what-if replay; None where that was not computed.
        left_share: the part of its idle that surely remains without the profiler, by the what-if replay; 1 where that
            is not known.
        evidence: rows of at most 20 replays or launch calls.
    """

    gpu: int
    process: int
    role: str
    eager: bool
    siblings_replay: bool
    replays: tuple[str, ...] = ()
    per_step_count: float | None = None
    span_p50_ns: float | None = None
    span_share: float | None = None
    step_span_p50_ns: float | None = None
    nodes: float | None = None
    steps: int | None = None
    steps_affected: int | None = None
    steps_share: float | None = None
    instead_of: tuple[str, ...] = ()
    step_with_p50_ns: float | None = None
    step_without_p50_ns: float | None = None
    idle_p50_ns: float | None = None
    idle_share: float | None = None
    gap_p50_ns: float | None = None
    kernel_p50_ns: float | None = None
    small_share: float | None = None
    pdl_overlap_share: float | None = None
    pdl_pairs: tuple[str, ...] = ()
    pdl_breaks: tuple[str, ...] = ()
    small_runs: tuple[str, ...] = ()
    tandems: tuple[str, ...] = ()
    tandem_ns: float | None = None
    tandem_share: float | None = None
    long_kernels: tuple[str, ...] = ()
    launch_p50_ns: float | None = None
    waits: float = 0.0
    unbroken: float | None = None
    recoverable_ns: float | None = None
    left_share: float = 1.0
    evidence: tuple[Evidence, ...] = ()

    @property
    def capturable(self) -> bool:
        """Whether it is single launches of which graphs could be made: waits leave enough of them in a row."""
        return self.eager and (self.unbroken is None or self.unbroken >= PHASE_LAUNCHES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeamFacts(OfRank):
    """The stretch between two roles of a step, and the chain of short eager kernels in it.

    Attributes:
        gpu: physical GPU.
        process: process key.
        after_role: the role before the seam.
        before_role: the role after it.
        glue_kernels: eager kernels of at most 4 us in the seam: the median number a step, over how often a step passes
            it. Between the pieces of a forward pass it is passed many times, with an attention of its own in each.
        glue_names: their names, most frequent first, at most 8.
        idle_p50_ns: idle between those kernels per step that no wait is charged with: gaps that one of them ends and
            that another kernel of the seam began.
        idle_share: that idle over all decode steps, over their total duration.
        left_share: the part of its idle that surely remains without the profiler, by the what-if replay; 1 where that
            is not known.
        evidence: rows of at most 20 of the kernels.
    """

    gpu: int
    process: int
    after_role: str | None
    before_role: str | None
    glue_kernels: float
    glue_names: tuple[str, ...] = ()
    idle_p50_ns: float | None = None
    idle_share: float | None = None
    left_share: float = 1.0
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HoleFacts(OfRank):
    """Stretches of a launching thread without any CUDA call, far above what it usually needs there.

    Attributes:
        gpu: physical GPU that idled.
        process: process key.
        thread: name of the thread.
        reason: ``gc``, ``gil``, ``descheduled`` or ``os call`` where the capture shows it, else None.
        detail: the OS call or the NVTX range that shows it, else None.
        nvtx: innermost range open on the thread during most of the holes.
        steps: steps of this process on this GPU, the first and the tail included.
        steps_affected: those with such a hole.
        steps_share: the share of the decode steps alone with one; None without decode steps.
        occurrences: holes in them.
        hole_p50_ns: how long they last together, the median of the affected steps: the decode steps among them, or all
            where none is. A hole belongs to the step in which its idle time begins.
        idle_p50_ns: idle charged to no wait under the same holes, the median of the same steps.
        idle_share: that idle over all decode steps, over their total duration.
        recoverable_ns: what a median step would lose without them, by the what-if replay; None where that was not
            computed.
        pauses: positions in `causes.pauses`.
        one_rank: whether other ranks were captured and have no such holes; None with one rank.
        evidence: rows of at most 20 calls that end a hole.
    """

    gpu: int
    process: int
    thread: str | None
    reason: str | None = None
    detail: str | None = None
    nvtx: str | None = None
    steps: int
    steps_affected: int
    steps_share: float | None = None
    occurrences: int
    hole_p50_ns: float | None = None
    idle_p50_ns: float | None = None
    idle_share: float | None = None
    recoverable_ns: float | None = None
    pauses: tuple[int, ...] = ()
    one_rank: bool | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts(OfRank):
    """Idle time before work that the host had launched in time: something in the queue held it back.

    Attributes:
        gpu: physical GPU that idled.
        process: process key.
        reason: ``host function`` or ``event wait`` where the launching thread put one in between, ``copy`` where a copy
            waited for its engine, else None.
        api: the call behind it: cudaLaunchHostFunc, cudaStreamWaitEvent, the copy's; None without a reason.
        steps: decode steps.
        steps_affected: those with such a gap.
        per_step_count: how often in one of these.
        idle_p50_ns: idle in such gaps, the median of these.
        idle_share: that idle over all decode steps, over their total duration.
        nvtx: innermost range in which most of that work was launched.
        recoverable_ns: what a median step would lose if nothing held that work back, by the what-if replay; None where
            that was not computed.
        occurrences: how many such gaps lie in the steps.
        pending: launches that wait at most of those gaps, if that fills the launch queue (about 1,000), so that launch
            calls wait for room and the what-if replay can't tell what the hold costs; else None.
        ended_by: positions in `timeline.operations` of the work that ends those gaps.
        evidence: rows of at most 20 of those calls.
    """

    gpu: int
    process: int
    reason: str | None = None
    api: str | None = None
    steps: int
    steps_affected: int
    per_step_count: float | None = None
    idle_p50_ns: float | None = None
    idle_share: float | None = None
    nvtx: str | None = None
    recoverable_ns: float | None = None
    occurrences: int = 0
    pending: float | None = None
    ended_by: tuple[int, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewFacts(OfRank):
    """Ranks that reach a collective, or a replay that they leave together, at different times: its length is no work.

    Attributes:
        gpu: physical GPU of the late rank, the one whose collective is shortest.
        process: its process key.
        collective: kernel name; null where the capture shows the whole replay alone.
        inside: it is a replay recorded as one block, which ranks enter apart and leave together.
        role: the replay that holds it, or that it is.
        waiting_gpu: physical GPU of the rank that waits longest.
        skew_p50_ns: per step, longest minus shortest length of the k-th collective over the ranks.
        skew_share: that time over all decode steps of the waiting rank, over their total duration.
        host_more_p50_ns: how much longer the late rank's GPU idles for its host in a step than the waiting rank's does;
            null where it doesn't.
        left_share: the part of what others wait for this rank that surely remains without the profiler, by the what-if
            replay; 1 where that is not known.
        left_p50_ns: that part of `skew_p50_ns`, where it is less than 95 %.
        evidence: rows of at most 20 of the collectives.
    """

    gpu: int
    process: int
    collective: str | None
    inside: bool = False
    role: str | None = None
    waiting_gpu: int | None = None
    skew_p50_ns: float | None = None
    skew_share: float | None = None
    host_more_p50_ns: float | None = None
    left_share: float = 1.0
    left_p50_ns: float | None = None
    evidence: tuple[Evidence, ...] = ()
