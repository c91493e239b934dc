"""The sentence every format opens with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblefinder.report.found import DeviceRef, Finding, Joint, Site
from bubblefinder.report.model import Stats, StepsReport
from bubblefinder.report.verdict import idle_per_step_ns, leading_finding, verdict
from bubblefinder.timeline.shares import BubbleShare
from bubblefinder.trace.model import QualityNote
from tests.unit.report.sample import finding, graph_report, healthy_report, sample_report, unseen_report
from tests.unit.report.test_row_of_waits import CHAIN


def without_steps(base: StepsReport) -> StepsReport:
    none = BubbleShare(intra_graph=None, inter_graph=None, total=None)
    return replace(base, method="none", count=0, per_step={}, by_device=[], bubble_share=none, rows=[])


def test_the_number_stands_in_the_headline_and_agrees_with_the_share() -> None:
    report = sample_report()
    judged = verdict(report)
    assert judged.number == f"{100 * (report.steps.bubble_share.total or 0):.1f} %"
    assert judged.headline == "The GPU idles 28.8 % of the decode time: 2.59 ms of 8.98 ms a step, the mean of 9 steps."


def test_a_mean_that_few_long_steps_make_is_told_beside_the_median() -> None:
    report = sample_report()
    lengths = replace(report.steps.per_step["duration"], mean=54e6, p50=8.9e6)
    steps = replace(report.steps, per_step=report.steps.per_step | {"duration": lengths})
    said = verdict(replace(report, steps=steps)).headline
    assert said.endswith("of 54.0 ms a step, the mean of 9 steps, half of which take at most 8.90 ms.")


def test_the_share_is_the_mean_idle_over_the_mean_step() -> None:
    report = sample_report()
    idle, least = idle_per_step_ns(report)
    mean = report.steps.per_step["duration"].mean
    assert idle is not None
    assert mean is not None
    assert not least
    assert abs(idle / mean - (report.steps.bubble_share.total or 0)) < 1e-12


def test_an_unmeasured_inside_makes_it_a_lower_bound() -> None:
    judged = verdict(graph_report())
    assert judged.headline.startswith(f"The GPU idles at least {judged.number} of the decode time")


def test_the_first_finding_that_is_more_than_a_note_is_blamed() -> None:
    note, read = finding(severity="info", title="a note"), finding()
    assert leading_finding(sample_report(findings=[note, read])) is read
    judged = verdict(sample_report(findings=[note, read]))
    assert judged.blame.startswith("First to fix: Blocking device-to-host copy")
    assert judged.gain == (
        "Removing it would give about 1.65 ms a step, 18.6 % of the median step. The step is then bound by the GPU."
    )


def test_a_gain_that_may_be_the_profilers_own_time_is_at_most_that() -> None:
    report = sample_report(findings=[finding()])
    untold = replace(report.overhead, traced_step_ns=8_900_000, corrected_step_ns=None, range_ns=(5_900_000, 8_900_000))
    gain = verdict(replace(report, overhead=untold)).gain
    assert gain.startswith("Removing it would give at most 1.65 ms a step, 18.6 % of the median step.")
    assert gain.endswith("But up to 3.00 ms of the step may be the profiler's own time.")
    told = replace(untold, corrected_step_ns=8_000_000)
    assert "profiler" not in verdict(replace(report, overhead=told)).gain


def test_an_unknown_gain_is_not_told() -> None:
    assert verdict(sample_report(findings=[finding(recoverable_ns=None)])).gain == ""


def test_a_cause_on_another_rank_only_says_where_it_is() -> None:
    judged = verdict(sample_report(findings=[finding(devices=[DeviceRef(gpu=1, pid=9)])]))
    assert judged.gain.startswith("Removing it would give about 1.65 ms a step in process 9 on GPU 1. ")


def test_without_recorded_calls_nobody_can_be_blamed() -> None:
    report = healthy_report()
    note = QualityNote(code="no-api-calls", level="warn", message="no CUDA API calls were traced", count=None)
    judged = verdict(replace(report, quality=[*report.quality, note]))
    assert judged.blame == "No host call can be blamed: the capture has no CUDA API calls."


def test_gaps_without_launch_calls_are_nobodys_proven_innocence() -> None:
    report = healthy_report()
    idle = Stats(mean=2e6, p50=2e6, p95=2e6, min=2_000_000, max=2_000_000)
    steps = replace(report.steps, per_step=report.steps.per_step | {"unattributed": idle})
    assert verdict(replace(report, steps=steps)).blame.startswith("No host call can be blamed: the capture lacks the")


def test_a_slow_host_is_not_told_as_nobody_to_blame() -> None:
    report = healthy_report()
    late = Stats(mean=2e6, p50=2e6, p95=2e6, min=2_000_000, max=2_000_000)
    steps = replace(report.steps, per_step=report.steps.per_step | {"host_late": late})
    assert verdict(replace(report, steps=steps)).blame.startswith(
        "No single host call is to blame: the host's own work"
    )


def test_a_healthy_run_blames_nobody() -> None:
    assert verdict(healthy_report()).blame == "No host call is to blame for idle time."


def test_unseen_graph_work_gives_no_number() -> None:
    judged = verdict(unseen_report())
    assert judged.number == ""
    assert "the export lacks the GPU work" in judged.headline
    assert judged.blame == (
        "No cause can be named: export the .nsys-rep again with Nsight Systems 2024.2 or newer, or capture with "
        "--cuda-graph-trace=node."
    )


def test_without_steps_the_window_is_told() -> None:
    base = sample_report(findings=[], expected=[])
    judged = verdict(replace(base, steps=without_steps(base.steps)))
    assert judged.headline.startswith("No decode steps were found. Over the window of 108 ms, GPU 0 was idle 28.7 %")
    assert judged.blame == "No host call can be blamed without decode steps: name one with --step-by."


def test_a_capture_without_devices_says_so() -> None:
    base = sample_report(findings=[], devices=[])
    assert verdict(replace(base, steps=without_steps(base.steps))).headline == "The capture holds no GPU work."


def test_where_only_what_is_expected_is_left_it_says_so() -> None:
    report = replace(sample_report(), findings=[])
    assert report.expected
    assert verdict(report).blame == f"Nothing to fix but what is expected: {report.expected[0].finding.title}."


@pytest.mark.parametrize(
    ("bound", "said"), [("GPU", "the GPU."), ("host", "the host."), ("wait", "the host and the GPU in turn.")]
)
def test_what_bounds_the_step_after_the_cure_is_said(bound: str, said: str) -> None:
    gain = verdict(sample_report(findings=[finding(bound_after=bound)])).gain
    assert gain.endswith(f"The step is then bound by {said}")


def test_one_step_has_no_mean() -> None:
    report = sample_report()
    said = verdict(replace(report, steps=replace(report.steps, count=1))).headline
    assert said == "The GPU idles 28.8 % of the decode time: 2.59 ms of 8.98 ms in the only step."


@pytest.mark.parametrize(
    ("title", "site", "said"),
    [
        ("A wait", Site(api="cudaFree", nvtx="load"), "A wait, by cudaFree in load."),
        ("A pause", Site(nvtx="compile"), "A pause, in compile."),
        ("cudaFree holds the host up", Site(api="cudaFree"), "cudaFree holds the host up."),
        ("cudaFree holds the host up", Site(api="cudaFree", nvtx="load"), "cudaFree holds the host up, in load."),
        ("A wait in load", Site(api="cudaFree", nvtx="load"), "A wait in load, by cudaFree."),
    ],
)
def test_the_blame_names_the_call_and_the_place_once(title: str, site: Site, said: str) -> None:
    assert verdict(sample_report(findings=[finding(title=title, site=site)])).blame == f"First to fix: {said}"


@pytest.mark.parametrize(
    ("site", "occurrences", "cure"),
    [
        (Site(nvtx="compile"), 3, "Removing it would give about 1.65 ms"),
        (Site(role="eager after draft"), None, "Capturing it as a graph would give about 1.65 ms"),
        (Site(), None, "A host that is never late, waits apart, would give about 1.65 ms"),
    ],
)
def test_the_gain_says_what_was_done_away_with(site: Site, occurrences: int | None, cure: str) -> None:
    assert verdict(sample_report(findings=[finding(site=site, occurrences=occurrences)])).gain.startswith(cure)


@pytest.mark.parametrize(("gain", "told"), [(1_900_000, True), (1_652_417, False), (900_000, False)])
def test_all_together_are_told_only_where_they_give_more_than_the_first_alone(gain: int, *, told: bool) -> None:
    joint = Joint(findings=2, step_ns=8_900_000 - gain, recoverable_ns=gain, range_ns=[0, 0])
    said = verdict(replace(sample_report(findings=[finding()]), joint=joint)).gain
    assert ("All 2 waits and pauses together" in said) is told


def test_all_together_are_not_told_where_the_step_reads_the_same_before_and_after() -> None:
    report = sample_report(findings=[finding(recoverable_ns=0)])
    now = round(report.steps.per_step["duration"].p50 or 0)
    joint = Joint(findings=3, step_ns=now - 100, recoverable_ns=100, range_ns=[0, 0])
    assert "together" not in verdict(replace(report, joint=joint)).gain


def test_what_the_first_finding_leaves_is_told_of_all_idle_time() -> None:
    said = verdict(sample_report(findings=[finding(idle_share=0.05, recoverable_ns=450_000)])).rest
    assert (
        "The first finding explains 449 us of 2.59 ms idle a step. Of all that idle time 1.60 ms is host late" in said
    )
    assert said.endswith(" and 874 us is inside graphs; no finding explains 2.14 ms.")


def test_a_cure_that_gives_more_than_its_cause_is_charged_with_is_not_set_against_that() -> None:
    assert verdict(sample_report(findings=[finding(idle_share=0.05, recoverable_ns=1_530_000)])).rest == ""


def test_where_nothing_is_grave_the_verdict_points_to_what_is_told_for_information() -> None:
    report = healthy_report()
    late = Stats(mean=2e6, p50=2e6, p95=2e6, min=2_000_000, max=2_000_000)
    notes = [finding(severity="info", title=f"the {number} note") for number in ("first", "second")]
    steps = replace(report.steps, per_step=report.steps.per_step | {"host_late": late})
    said = verdict(replace(report, steps=steps, findings=notes)).blame
    assert "keeps the GPU waiting. First to look at, for information: the first note." in said


@pytest.mark.parametrize(
    ("category", "said"), [("other", ""), ("attention", " Kernel time goes into attention 100 %.")]
)
def test_where_kernel_time_goes_is_left_out_where_no_name_says_it(category: str, said: str) -> None:
    report = healthy_report()
    share = replace(report.steps.bubble_share, inter_graph=0.001)
    kernels = [replace(row, category=category) for row in report.detail.kernels]
    fed = replace(
        report, steps=replace(report.steps, bubble_share=share), detail=replace(report.detail, kernels=kernels)
    )
    assert kernels
    assert verdict(fed).blame.endswith(f"lies idle outside graphs.{said}")


@pytest.mark.parametrize(
    ("affected", "said"),
    [(1, "The host is fine, stop looking for syncs"), (9, "First to fix: Blocking device-to-host")],
)
def test_a_low_wait_leads_a_fed_gpu_only_if_the_usual_step_has_it(affected: int, said: str) -> None:
    report = healthy_report()
    share = replace(report.steps.bubble_share, inter_graph=0.014)
    wait = finding(severity="low", steps_affected=affected)
    fed = replace(report, steps=replace(report.steps, bubble_share=share), findings=[wait])
    assert verdict(fed).blame.startswith(said)


@pytest.mark.parametrize(
    ("leader", "gain"),
    [
        (finding(site=Site(), occurrences=3), "Removing the first would give about 1.65 ms"),
        (finding(site=Site(role="eager"), occurrences=3), "Capturing the first as a graph would give about 1.65 ms"),
        (finding(site=Site(), occurrences=None), "A host that is never late, waits apart, would give about 1.65 ms"),
    ],
)
def test_where_waits_in_a_row_are_told_beside_the_leading_finding_each_gain_says_whose_it_is(
    leader: Finding, gain: str
) -> None:
    report = sample_report(findings=[leader])
    row = replace(CHAIN, gpu=report.steps.gpu or 0, pid=report.steps.pid or 0)
    said = verdict(replace(report, wait_chains=[row]))
    assert ". Beside it, 3 waits in a row: 1. Lengths" in said.blame
    assert said.gain.startswith(gain)
    assert " The waits together would give 1.60 ms" in said.gain
