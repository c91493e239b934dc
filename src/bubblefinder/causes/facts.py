"""What the rules may look at: small frozen records, one a subject, computed from the causes and the timeline.

A rule is about one kind of subject: a wait (`SiteFacts`), a whole step (`StepFacts`), a role, a seam, a hole
or a skew between ranks. Every figure covers the closed decode steps of one process on one GPU unless it says
otherwise. Times are integer or fractional nanoseconds, shares lie in 0..1, unknown is None and never 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from bubblefinder.causes.evidence import Evidence  # noqa: TC001 - the rules read the annotations
from bubblefinder.causes.host_record import HostTime  # noqa: TC001
from bubblefinder.causes.step_parts import HoleFacts, OfRank, QueueFacts, RoleFacts, SeamFacts, SkewFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts(OfRank):
    """A site that cost the GPU time at least once, or a group of such sites (three reads of one plan()).

    Attributes:
        gpu: physical GPU of the gaps charged to it.
        process: process key of the waiting thread.
        sites: numbers in `causes.sites`, in the order in which they occur in a step.
        members: for a group of several sites one record a site, in that order, also those of the group that
            never cost time by themselves; empty for a single site.
        api: name without suffixes of the wait itself; for a copy that blocks inside its call the copy's API. A
            group takes the descriptive fields (api ... before_role) of the member with the largest bubble.
        awaits: whether the calls wait for the GPU; False for driver calls that are busy with themselves while the GPU
            idles (cudaHostAlloc, cudaGraphInstantiate).
        copy_kind: direction as in `trace.model.COPY_KINDS` (``DtoH``) of the blocking copy, or of the copy that
            the wait waits for: the last copy that the same thread issued, on the stream that is waited for (where
            known), with no launch between it and the wait. None for a wait without such a copy.
        memory_kind: the host side of that copy, as in `trace.model.MEMORY_KINDS`.
        bytes: its size, the commonest over the waits of the site in the steps.
        nvtx: innermost open range on the waiting thread when the wait begins.
        nvtx_stack: all open ranges, outermost first (ends with `nvtx`); empty without NVTX.
        frame: innermost Python or C frame of the call chain that is not CUDA's or the framework's own; where all are,
            the framework's function that Python called, such as ``THPVariable_item``.
        frames: the whole chain, innermost first; empty without call chains.
        thread: name of the waiting thread.
        other_thread: number and name of the waiting thread where another one launches behind the wait, in step after
            step; None where the same one does both.
        after_role: role of the replay or eager phase that was launched last before the wait.
        before_role: role of the one that is launched first after it.
        steps: steps of this process on this GPU: the decode steps, and the first and the tail, which count here.
        steps_affected: those in which a wait of the site cost the GPU time.
        steps_share: the share of the decode steps alone in which one did; None without decode steps.
        occurrences: such waits in them.
        per_step_count: waits of the site per step, costly or not, over the decode steps; a wait that joined
            another's site (the short synchronise after a blocking copy) isn't counted again.
        blocked_p50_ns: host-blocked time per step (sum over the waits of one step), over the affected decode steps.
        blocked_p95_ns: the same, 95th percentile.
        bubble_p50_ns: idle charged to it per step, over the affected decode steps.
        bubble_p95_ns: the same, 95th percentile.
        bubble_share: idle charged to it over all decode steps, over their total duration.
        idle_in: the innermost ranges, of the thread that launched late, in which that idle lies, most first, at most 3:
            ``update halo (99 %)``.
        recoverable_ns: what a median step would lose without the wait, by the what-if replay; None where that
            was not computed.
        in_turn_ns: of a wait in a chain, what a median step would lose without it when the waits before it in the
            chain are gone too, by the what-if replay; None for any other.
        held: whether the GPU stayed fed under every wait of the site, while the host could go on only when it returned.
        private_stream: whether the copy runs on a stream that does no graph replay or kernel in the step; None
            without a copy.
        event_before: whether the same thread made the copy's stream wait for an event (cudaStreamWaitEvent)
            after the last launch and before the copy; None where the stream of the call isn't recorded and can't
            be inferred. A call in between by the same thread is enough where it is the only one.
        steps_behind: how many steps before that of the last work launched the copy belongs to: 0 for the result of the
            step that was just launched, 1 where the host runs a step ahead; None without a copy.
        kernels_before: names of the last eager kernels (at most 4, nearest last) that the thread launched before
            the wait and after the last replay.
        kernels_after: names of the first eager kernels (at most 4, nearest first) launched after it and before
            the next replay.
        copies_after: directions of the copies issued on the copy's stream (the waited stream where there is no
            copy) after the wait and before the next kernel or graph launch of the thread, in order, at most 8.
        memory_after: the host sides of those copies.
        evidence: the rows of some costly waits (at most 20, spread over the capture): calls, then their copies.
    """

    gpu: int
    process: int
    sites: tuple[int, ...]
    members: tuple[SiteFacts, ...] = ()
    api: str
    awaits: bool = True
    copy_kind: str | None = None
    memory_kind: str | None = None
    bytes: int | None = None
    nvtx: str | None = None
    nvtx_stack: tuple[str, ...] = ()
    frame: str | None = None
    frames: tuple[str, ...] = ()
    thread: str | None = None
    other_thread: str | None = None
    after_role: str | None = None
    before_role: str | None = None
    steps: int
    steps_affected: int
    steps_share: float | None = None
    occurrences: int
    per_step_count: float | None = None
    blocked_p50_ns: float | None = None
    blocked_p95_ns: float | None = None
    bubble_p50_ns: float | None = None
    bubble_p95_ns: float | None = None
    bubble_share: float | None = None
    idle_in: tuple[str, ...] = ()
    recoverable_ns: float | None = None
    in_turn_ns: float | None = None
    held: bool = False
    private_stream: bool | None = None
    event_before: bool | None = None
    steps_behind: int | None = None
    kernels_before: tuple[str, ...] = ()
    kernels_after: tuple[str, ...] = ()
    copies_after: tuple[str, ...] = ()
    memory_after: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts(OfRank):
    """The decode steps of one process on one GPU as a whole.

    Attributes:
        gpu: physical GPU.
        process: process key.
        mode: capture mode (node, graph, mixed, none, unseen).
        steps: decode steps.
        step_p50_ns: median duration; None with no decode step.
        busy_share: busy time over duration, totals over the decode steps; so are the other class shares.
        intra_graph_share: None where the inside of the graphs was not measured or there are none.
        host_late_share: idle before the launch began.
        launching_share: idle while the launch call ran.
        queued_share: idle after the launch had returned.
        unattributed_share: idle whose launch is unknown.
        inter_share: the four together.
        host_slow_p50_ns: host_late idle per step that no wait is charged with, and launching idle too unless graph
            nodes were traced (mode node): there a launch call takes many times as long as it does untraced.
        host_slow_mean_ns: the mean of that idle over all decode steps.
        host_slow_share: that idle over all decode steps, over their total duration.
        host_in_calls_share: share of that idle with the launching thread inside CUDA calls; None where there is none.
        late_in: those calls by name with their share of it, longest first, at most 4: ``cudaEventRecord (31.0 %)``.
        idle_in: the innermost ranges in which that idle lies, as of a wait.
        host_slow_recoverable_ns: what a median step would lose if the host were never late where no wait is to blame,
            by the what-if replay, and no more than the idle there; None where that was not computed.
        run_ahead_share: share of launch calls with a positive launch lead, blocking copies left out.
        accept_length: tokens a verify pass commits, where the step drafts and the user or a benchmark says it.
        waits_share: idle charged to waits over all decode steps, over their total duration.
        launches_per_step: launch calls (graphs, kernels, copies, memsets) per step.
        graph_launches_per_step: graph launches among them.
        launch_p50_ns: host time inside graph and kernel launch calls per step.
        host_work_p50_ns: what the launching thread needs for a step without waiting for the GPU.
        host_longest: where that goes: the longest phases, each with its calls and the program's own work.
        host_shorten: what would shorten its step most, by the what-if replay; empty where that was not computed.
        host: where the step of the launching thread goes, by phase, call and range.
        roles: replays and eager phases of the step, in order.
        seams: the stretches between them, in order.
        holes: holes without a CUDA call.
        queues: what held queued work back.
        copies_alone_share: share of the decode time in which only copies between host and GPU of at least 10 us run.
        copies_alone_kind: the direction in which most of them go.
        collective_share: share of the decode time in collectives' own work, with nothing beside it: of each the
            shortest over the ranks; None where there are none or some can't be followed to the other ranks.
        collective_wait_share: the same of the time spent waiting for other ranks in them.
        collective_most_share: where some can't be followed, the share of both together; else None.
        collectives: their kernels, ``name x count`` with the number a step, costliest first, at most 4.
        skews: skew between ranks seen from this rank as the late one.
        left_share: the part of its idle that surely remains without the profiler, by the what-if replay; 1 where that
            is not known.
        evidence: the rows of at most 20 launch calls that the GPU ran dry before.
    """

    gpu: int
    process: int
    mode: str
    steps: int
    step_p50_ns: float | None = None
    busy_share: float | None = None
    intra_graph_share: float | None = None
    host_late_share: float | None = None
    launching_share: float | None = None
    queued_share: float | None = None
    unattributed_share: float | None = None
    inter_share: float | None = None
    host_slow_p50_ns: float | None = None
    host_slow_mean_ns: float | None = None
    host_slow_share: float | None = None
    host_in_calls_share: float | None = None
    late_in: tuple[str, ...] = ()
    idle_in: tuple[str, ...] = ()
    host_slow_recoverable_ns: float | None = None
    run_ahead_share: float | None = None
    accept_length: float | None = None
    waits_share: float | None = None
    launches_per_step: float | None = None
    graph_launches_per_step: float | None = None
    launch_p50_ns: float | None = None
    host_work_p50_ns: float | None = None
    host_longest: tuple[str, ...] = ()
    host_shorten: tuple[str, ...] = ()
    host: HostTime | None = None
    roles: tuple[RoleFacts, ...] = ()
    seams: tuple[SeamFacts, ...] = ()
    holes: tuple[HoleFacts, ...] = ()
    queues: tuple[QueueFacts, ...] = ()
    copies_alone_share: float | None = None
    copies_alone_kind: str | None = None
    collective_share: float | None = None
    collective_wait_share: float | None = None
    collective_most_share: float | None = None
    collectives: tuple[str, ...] = ()
    skews: tuple[SkewFacts, ...] = ()
    left_share: float = 1.0
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the rules see: the waits that cost a GPU time, and one record a process and GPU with steps.

    `programs` are the libraries that the capture shows at work, as in `trace.programs.PROGRAMS`.
    """

    sites: tuple[SiteFacts, ...]
    steps: tuple[StepFacts, ...]
    programs: tuple[str, ...] = ()
