"""What was found in one capture, stage by stage: the only place that joins the stages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from bubblefinder.causes.carried_names import carry_names
from bubblefinder.causes.facts_build import build_facts
from bubblefinder.causes.find import find_causes
from bubblefinder.memory import give_back
from bubblefinder.replay.build import build_model
from bubblefinder.replay.fixes import find_fixes
from bubblefinder.replay.host_parts import late_hosts, shortenings
from bubblefinder.replay.lateness import lateness_left
from bubblefinder.replay.recoverable import Recoverable, recoverable
from bubblefinder.replay.study import Study, study_of
from bubblefinder.replay.untraced import left_without_tracing, with_untraced
from bubblefinder.replay.wait_chains import wait_chains
from bubblefinder.share.cut import cut_steps, cut_window
from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.missing import untold

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.causes.facts import Facts
    from bubblefinder.causes.model import Causes
    from bubblefinder.replay.model import Model
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import Trace


def _silent(_: str) -> None:
    """Report no progress."""


@dataclass(frozen=True, eq=False)
class Analysis:
    """One capture and what each stage found in it.

    A stage runs when it is first asked for, once, after those that it builds on; a fault of the
    capture is raised there.

    Attributes:
        trace: the capture.
        window: only operations that start in [start, end), ns from the capture's start, see `part`.
        step_by: how to find the steps, see `steps.find.find_steps`.
        selected: only decode steps with index in [start, end), see `part`.
        progress: called with the name of each stage as it begins.
    """

    trace: Trace
    window: tuple[int, int] | None = None
    step_by: str | None = None
    selected: tuple[int, int] | None = None
    progress: Callable[[str], None] = field(default=_silent, repr=False)

    @cached_property
    def whole(self) -> Analysis:
        """The whole capture, its steps found without being told how."""
        return Analysis(self.trace)

    @cached_property
    def part(self) -> Trace:
        """What was asked for of the capture, or the capture itself.

        That is operations, their launch calls and all else that happened meanwhile: those of the window; of these those
        of the selected steps, with what reaches into the first of them and what follows the last, no longer than one of
        them. Launch calls whose work was left out are left out too, so that nothing seems unrecorded. `row` counts as
        in the capture.

        Raises:
            CannotAnswerError: there is no such work, or no such step.
        """
        trace = cut_window(self.whole.timeline, self.window) if self.window else self.trace
        if not self.selected:
            return trace
        found = Analysis(trace, step_by=self.step_by) if self.window or self.step_by else self.whole
        return cut_steps(found.timeline, found.steps, self.selected)

    @cached_property
    def timeline(self) -> Timeline:
        """Every operation on its GPU with the call that launched it, and every idle moment classed.

        Raises:
            CannotAnswerError: the capture holds no GPU work, none in the window, or no such steps.
            UsageError: `step_by` is no way to find steps.
        """
        self.progress("timeline")
        return build_timeline(self.part)

    @cached_property
    def steps(self) -> Steps:
        """The decode steps, and the role of every replay.

        Raises:
            UsageError: `step_by` is no way to find steps.
            CannotAnswerError: nothing in the capture fits `step_by`.
        """
        timeline = self.timeline
        self.progress("steps")
        found = find_steps(timeline, None if self.selected else self.step_by)
        give_back()
        return found

    @cached_property
    def causes(self) -> Causes:
        """The waits of the host, what each is charged with, and where it stands in the program."""
        steps = self.steps
        self.progress("causes")
        found = find_causes(self.timeline, steps)
        give_back()
        return found

    @cached_property
    def facts(self) -> Facts:
        """What rules look at, one record a subject; what is recoverable of each isn't filled in."""
        return build_facts(self.timeline, self.steps, self.causes)

    @cached_property
    def model(self) -> Model | None:
        """The recorded run, to be run again with changes; null where work is missing, times or steps are none."""
        causes = self.causes
        timeline = self.timeline
        if untold(timeline) or timeline.walked or self.steps.windows.is_empty():
            return None
        self.progress("what if")
        model = build_model(timeline, self.steps, causes)
        return with_untraced(timeline, self.steps, model, late_hosts(self.facts))

    @cached_property
    def recoverable(self) -> Recoverable:
        """What the median step would lose without each cause; empty where no step can be timed."""
        late = late_hosts(self.facts)
        if self.model is None:
            return Recoverable()
        lateness = lateness_left(self.timeline, self.model)
        if not late:
            return replace(recoverable(self.model, self.causes, self.facts), lateness=lateness)
        run = (self.timeline, self.steps, self.causes, self.model, late)
        found = recoverable(self.model, self.causes, self.facts, wait_chains(*run))
        hosts = {rank: never_late for rank, never_late in found.hosts.items() if rank in late}
        left = left_without_tracing(self.timeline, self.model, hosts)
        return replace(found, shorter=shortenings(*run, self.facts), left=left, lateness=lateness)

    @cached_property
    def study(self) -> Study:
        """The recorded run and what can be changed in it.

        Raises:
            CannotAnswerError: no decode step can be timed, or graph work is missing.
        """
        cured = self.recoverable
        fixes = find_fixes(self.causes, self.facts, cured)
        return study_of(self.timeline, self.steps, self.model, fixes, cured.left)


def with_names_of(analysis: Analysis, names: Trace) -> Analysis:
    """Return the analysis of a capture whose calls have the names of their counterparts in another one.

    Raises:
        CannotAnswerError: one of the two holds no GPU work.
    """
    analysis.progress("names")
    named = Analysis(names)
    causes = (analysis.causes.submitted, named.causes.submitted)
    trace = carry_names(analysis.timeline, causes[0], named.timeline, causes[1])
    return Analysis(trace, step_by=None if analysis.selected else analysis.step_by, progress=analysis.progress)
