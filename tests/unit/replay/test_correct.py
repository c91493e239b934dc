"""What the correction says of real captures, judged by what it was not given."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from bubblefinder.errors import CannotAnswerError
from bubblefinder.overhead.calibration import bundled_calibrations
from bubblefinder.overhead.model import Cost, Costs, Overhead, Source
from bubblefinder.replay.correct import correct
from bubblefinder.replay.corrected import traced_steps, without_tracing
from bubblefinder.replay.summary import summarise
from tests import samples
from tests.schemas import report_schema
from tests.unit.replay.taxed import Eager, Loop, Tax, decode, on_h200, sums

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.replay.corrected import Corrected, TracedSteps
    from bubblefinder.replay.model import Model
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import Trace

MS = 1_000_000
SAMPLES = Path(__file__).parents[3] / "sample_traces"
BOUND_BY_HOST = ("hard_before.graph", "hard_after.graph", "null_host_1.graph", "null_host_2.graph")


def capture(name: str) -> Trace:
    return samples.analysis(name).trace


@cache
def decoded(name: str) -> tuple[Timeline, Steps, Model | None, pl.DataFrame]:
    return decode(samples.analysis(name))


@pytest.fixture
def ledgers(monkeypatch: pytest.MonkeyPatch) -> list[pl.DataFrame]:
    """The ledgers of which the corrections that a test asks for are the medians."""
    kept: list[pl.DataFrame] = []

    def keep(steps: TracedSteps, middle: Corrected, *rest: Any) -> Overhead:
        kept.append(middle.rows)
        return summarise(steps, middle, *rest)

    monkeypatch.setattr("bubblefinder.replay.correct.summarise", keep)
    monkeypatch.setattr("bubblefinder.replay.reference.summarise", keep)
    return kept


def corrected(name: str, source: Source | None = None) -> Overhead:
    return correct(*decoded(name), source or Source())


@pytest.mark.parametrize(
    ("name", "untraced_ms"), [("nextn_after.node", 7.01), ("dspark_after.node", 7.02), ("nextn_after_pdl.node", 7.05)]
)
def test_the_bundled_calibration_alone_finds_the_untraced_step(name: str, untraced_ms: float) -> None:
    found = corrected(name)
    assert found.method == "assumed"
    assert found.traced_step_ns == pytest.approx(untraced_ms * MS, rel=0.05)
    assert (found.traced_step_ns or 0) > 1.025 * untraced_ms * MS
    assert found.corrected_step_ns == pytest.approx(untraced_ms * MS, rel=0.02)
    low, high = found.range_ns or (0, 0)
    assert low < untraced_ms * MS < high


@pytest.mark.parametrize(("name", "untraced_ms"), [("nextn_before.node", 8.56), ("tp2_before.node", 6.14)])
def test_it_holds_where_the_host_reads_every_step(name: str, untraced_ms: float) -> None:
    assert corrected(name).corrected_step_ns == pytest.approx(untraced_ms * MS, rel=0.02)


@pytest.mark.parametrize("name", BOUND_BY_HOST)
def test_next_to_nothing_is_subtracted_from_host_bound_graph_captures(name: str) -> None:
    found = corrected(name)
    assert found.method == "assumed"
    assert found.corrected_step_ns == pytest.approx(found.traced_step_ns, rel=0.002)


def test_graph_mode_is_within_a_tenth_of_a_percent() -> None:
    found = corrected("null_gpu_1.graph")
    assert found.inflation == pytest.approx(1.0, abs=0.003)
    assert found.corrected["intra_graph"] is None
    assert found.corrected_bubble_share is not None
    assert found.corrected_bubble_share.intra_graph is None
    assert found.corrected_bubble_share.total is None


def test_an_untraced_step_gives_the_length_of_every_role() -> None:
    found = corrected("nextn_after.node", Source(untraced_step_ns=7.01 * MS))
    timeline, steps, model, rows = decoded("nextn_before.graph")
    assert model is not None
    reference = without_tracing(traced_steps(timeline, steps, model, rows), Costs()).roles
    assert found.method == "untraced_step"
    assert found.corrected["duration"] == pytest.approx(7.01 * MS, abs=10)
    assert set(found.corrected_roles) == set(reference) == {"draft", "verify", "draft-extend"}
    for role, length in reference.items():
        assert found.corrected_roles[role] == pytest.approx(length, rel=0.015)


def test_a_mean_is_held_against_the_mean_and_the_median_told() -> None:
    """One of the four steps of this rank is long: their mean lies 1 % above their median."""
    mean = corrected("tp2_before.node", Source(untraced_step_ns=6.14 * MS, untraced_is_mean=True))
    median = corrected("tp2_before.node", Source(untraced_step_ns=6.14 * MS))
    assert median.corrected_step_ns == 6.14 * MS
    assert mean.corrected_step_ns == pytest.approx(0.989 * 6.14 * MS, rel=0.002)
    assert abs(mean.unexplained_ns or 0) < 20
    assert "the mean untraced step" in mean.message
    assert "the median untraced step" in median.message


def test_a_reference_gives_the_gaps_between_replays(ledgers: list[pl.DataFrame]) -> None:
    found = corrected("nextn_before.node", Source(reference=capture("nextn_before.graph")))
    _, _, _, rows = decoded("nextn_before.graph")
    assert found.method == "reference_capture"
    assert all(map(sums, ledgers))
    assert ledgers
    for part in ("duration", "launching", "host_late", "queued"):
        assert found.corrected[part] == pytest.approx(np.median(rows[f"{part}_ns"].to_numpy()), abs=1)
    raw = decoded("nextn_before.node")[3]
    assert np.median(raw["launching_ns"].to_numpy()) > 2 * (found.corrected["launching"] or 0)
    inside = found.corrected["intra_graph"] or 0
    assert 0.6 * 873_000 < inside < 0.8 * 873_000
    assert found.parameters["reference"] == "nextn_before.graph.sqlite.xz"
    assert "longer" not in found.message


def test_a_reference_whose_gpu_waits_for_the_host_is_as_sure_of_its_step_as_by_itself() -> None:
    found = corrected("nextn_before.node", Source(reference=capture("nextn_before.graph")))
    own = corrected("nextn_before.graph")
    assert found.range_ns == own.range_ns
    low, high = found.range_ns or (0, 0)
    assert low < 0.97 * (found.corrected_step_ns or 0) < (found.corrected_step_ns or 0) < high
    assert "whose own speed differs" in found.message


def test_without_costs_a_reference_is_as_sure_as_hosts_differ() -> None:
    found = corrected("nextn_before.node", Source(reference=capture("nextn_before.graph"), bundled=False))
    low, high = found.range_ns or (0, 0)
    assert low < 0.93 * (found.corrected_step_ns or 0)
    assert 1.12 * (found.corrected_step_ns or 0) < high


def test_a_reference_that_takes_longer_is_said_to_be_of_another_run() -> None:
    found = corrected("nextn_after.node", Source(reference=capture("nextn_before.graph")))
    assert "That is longer" in found.message


def test_an_unknown_collector_gets_raw_numbers_and_the_reason() -> None:
    found = corrected("nextn_before.nsys2023.node")
    assert found.method == "none"
    assert found.corrected == {}
    assert found.corrected_step_ns is None
    assert "doesn't name its collector" in found.message
    assert "--untraced-step-ms" in found.message
    assert "calibrate" not in found.message  # which would be turned down for the same reason


def test_a_run_that_tracing_made_faster_is_said_to_be(ledgers: list[pl.DataFrame]) -> None:
    traced = corrected("nextn_after.node").traced_step_ns or 0
    found = corrected("nextn_after.node", Source(untraced_step_ns=1.03 * traced))
    assert found.inflation == pytest.approx(1 / 1.03)
    assert found.parameters["factor"] < 0
    assert "The profiler took " in found.message
    assert " off the step (2.9 %)" in found.message
    assert "faster than the untraced one" in found.message
    assert all(map(sums, ledgers))
    assert ledgers


def test_a_step_that_only_another_host_gives_is_that_hosts(ledgers: list[pl.DataFrame]) -> None:
    found = corrected("hard_before.graph", Source(untraced_step_ns=12 * MS))
    assert found.corrected_step_ns == 12 * MS
    assert found.corrected["duration"] == pytest.approx(12 * MS, rel=0.001)
    assert 1.3 < found.parameters["host_speed"] < 1.6
    assert "times as fast as recorded" in found.message
    assert all(map(sums, ledgers))
    assert ledgers


def test_an_untraced_step_out_of_reach_is_left_unexplained(ledgers: list[pl.DataFrame]) -> None:
    found = corrected("hard_before.graph", Source(untraced_step_ns=2 * MS))
    assert (found.unexplained_ns or 0) > 2 * MS
    assert all(map(sums, ledgers))
    assert ledgers


def test_a_capture_without_graph_work_is_not_corrected() -> None:
    found = corrected("dspark_before.nsys2023.graph", Source(untraced_step_ns=7 * MS))
    assert found.method == "none"
    assert found.corrected == {}


def test_no_decode_steps() -> None:
    timeline, steps, model, rows = decoded("nextn_after.node")
    found = correct(timeline, steps, model, rows.clear(), Source())
    assert (found.method, found.traced_step_ns) == ("none", None)


NAMES = [path.name.removesuffix(".sqlite.xz") for path in sorted(SAMPLES.glob("*.sqlite.xz"))]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "dspark_before.nsys2023.graph"])
def test_every_sample_sums_and_without_costs_stays_as_it_is(name: str, ledgers: list[pl.DataFrame]) -> None:
    timeline, steps, model, rows = decoded(name)
    assert model is not None
    unchanged = without_tracing(traced_steps(timeline, steps, model, rows), Costs()).rows
    assert unchanged.equals(rows.select(unchanged.columns))
    found = corrected(name)
    if found.corrected:
        assert all(map(sums, ledgers))
        low, high = found.range_ns or (0, 0)
        assert low <= (found.corrected_step_ns or low) <= high


def test_a_calibration_given_wins_over_the_bundled_one() -> None:
    (one,) = bundled_calibrations()
    found = corrected("nextn_after.node", Source(calibration=one))
    assert found.method == "calibration"
    assert found.corrected_step_ns == corrected("nextn_after.node").corrected_step_ns


def test_nothing_assumed_when_that_is_not_wanted() -> None:
    assert corrected("nextn_after.node", Source(bundled=False)).method == "none"


def test_an_intra_graph_share_less_sure_than_large_is_withheld() -> None:
    (one,) = bundled_calibrations()
    unsure = replace(one, node=replace(one.node, kernel_node=Cost(130, 0, 460)))
    found = corrected("nextn_after.node", Source(calibration=unsure))
    assert found.corrected_bubble_share is not None
    assert found.corrected_bubble_share.intra_graph is None
    assert found.corrected_bubble_share.total is None
    assert found.corrected_bubble_share.inter_graph is not None
    low, high = found.corrected_bubble_share_range["intra_graph"] or (0, 0)
    assert high - low > 0.09


@pytest.mark.parametrize("behind_us", [0, 2, 9, 18])
def test_what_tracing_adds_behind_the_calls_of_an_eager_program_is_in_the_range_and_no_more_is_said(
    behind_us: int,
) -> None:
    step = Eager(Tax(), 5, reads=True).run(12)
    untraced = float(np.median(decode(step)[3]["duration_ns"].to_numpy()))
    found = correct(*decode(on_h200(Eager(Tax(behind=behind_us * 1_000), 5, reads=True).run(12))), Source())
    low, high = found.range_ns or (0, 0)
    assert low < untraced <= high
    assert found.message.startswith("What the profiler added can't be told from this capture")
    assert found.corrected_step_ns is None
    assert (found.corrected, found.corrected_roles, found.corrected_bubble_share) == ({}, {}, None)


def test_an_eager_capture_with_a_known_untraced_step_holds_it_in_its_range() -> None:
    low, high = corrected("eager_item").range_ns or (0, 0)
    assert low < 10.8 * MS < 11.9 * MS < high


def test_a_reference_in_node_mode_is_refused() -> None:
    with pytest.raises(CannotAnswerError, match=r"reference nextn_after\.node\.sqlite\.xz was captured in node mode"):
        corrected("nextn_before.node", Source(reference=capture("nextn_after.node")))


def test_a_reference_of_another_workload_is_refused() -> None:
    other = Loop(Tax(), 100, reads=True, node_mode=False).run(8)
    mine = decode(on_h200(Loop(Tax(), 100, reads=True, graphs=(("a", 5, 4), ("b", 6, 5))).run(8)))
    with pytest.raises(CannotAnswerError, match="the reference plays"):
        correct(*mine, Source(reference=other))


def section(source: Source, cupti: str | None = "13.0") -> Overhead:
    return correct(*decode(on_h200(Loop(Tax(node=130), 100, reads=True).run(8), cupti)), source)


def test_raw_and_corrected_stand_side_by_side() -> None:
    found = section(Source())
    assert found.method == "assumed"
    assert found.traced_step_ns is not None
    assert found.corrected_step_ns is not None
    assert found.corrected_step_ns < found.traced_step_ns
    assert found.range_ns is not None
    assert found.range_ns[0] <= found.corrected_step_ns <= found.range_ns[1]
    assert list(found.corrected_roles) == ["draft", "verify", "draft-extend"]
    assert found.corrected_bubble_share is not None
    assert set(found.corrected_bubble_share_range) == {"intra_graph", "inter_graph", "total"}


def test_an_unknown_collector_leaves_everything_null() -> None:
    found = section(Source(), cupti=None)
    assert found.method == "none"
    assert found.corrected == {}
    assert found.corrected_bubble_share is None
    assert found.message


def test_it_is_written_as_json() -> None:
    for found in (section(Source()), section(Source(untraced_step_ns=1e6)), section(Source(), cupti=None)):
        assert msgspec.json.decode(msgspec.json.encode(found), type=Overhead) == found
    assert "corrected_bubble_share_range" in str(report_schema())
