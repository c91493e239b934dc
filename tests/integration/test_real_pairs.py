"""What real captures of known programs must say when they are compared."""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import bubblefinder
from bubblefinder.compare.diff import Options, diff, failed
from bubblefinder.compare.noise import Floors
from bubblefinder.render.formats import render
from tests.samples import report

if TYPE_CHECKING:
    from bubblefinder.compare.model import Change, Diff

SAMPLES = Path(__file__).parents[2] / "sample_traces"
NAMES = sorted(
    p.name.removesuffix(".sqlite.xz") for p in SAMPLES.iterdir() if p.suffix == ".xz" or p.name.endswith("dir")
)
MS = 1_000_000
MIRROR = {"regression": "improvement", "improvement": "regression"}


def compared(base: str, head: str, options: Options | None = None) -> Diff:
    return diff([report(base)], [report(head)], options)


def change(result: Diff, metric: str) -> Change:
    return next(c for c in result.changes if c.metric == metric and c.where in ({}, {"rank": 0}))


def gone(result: Diff) -> list[str]:
    return [str(f.base.title) for f in result.findings if f.status == "gone" and f.structural]


def test_removing_the_read_of_sequence_lengths_is_an_improvement() -> None:
    result = compared("nextn_before.node", "nextn_after.node")
    assert result.verdict == "improvement"
    assert change(result, "step.host_late.p50").delta == pytest.approx(-1.5 * MS, abs=0.1 * MS)
    assert change(result, "step.duration.p50").delta == pytest.approx(-1.6 * MS, abs=0.1 * MS)
    assert change(result, "step.busy.p50").status == "same"
    assert [title for title in gone(result) if "resolve_seq_lens_cpu" in title]
    assert change(result, "waits.draining.per_step").delta == -1


def test_planning_attention_on_the_host_is_an_improvement() -> None:
    result = compared("dspark_before.node", "dspark_after.node")
    assert result.verdict == "improvement"
    assert [title for title in gone(result) if "plan()" in title]


def test_a_read_that_went_is_not_what_a_faster_host_gave() -> None:
    """Untraced both take as long; the second process's calls took 6 % less."""
    for base, head in permutations(("sglang/chain.graph", "sglang/chain_1.graph")):
        result = compared(base, head)
        assert (result.verdict, result.suspects) == ("no change", [])


def test_pauses_that_both_sides_have_are_not_new() -> None:
    result = compared("hard_before.graph", "hard_after.graph")
    assert {"new", "worse"}.isdisjoint(f.status for f in result.findings if f.site.api is None)
    assert [f.status for f in result.findings if f.site.api] == ["gone"]


def test_gaps_inside_a_graph_are_the_same_whatever_rule_is_about_them() -> None:
    result = compared("nextn_after.node", "nextn_after_pdl.node")
    idle = [f for f in result.findings if f.head.bubble_ns is not None]
    inside = {f.site.role: f for f in idle if f.site.role in {"verify", "draft"}}
    assert {role: f.status for role, f in inside.items()} == {"verify": "same", "draft": "same"}
    assert inside["verify"].delta_ns == pytest.approx(-18_000, abs=3_000)


@pytest.mark.parametrize(
    "pair", [("nextn_after.node", "nextn_before.node"), ("dspark_after.node", "dspark_before.node")]
)
def test_putting_them_back_is_a_regression(pair: tuple[str, str]) -> None:
    result = compared(*pair)
    assert result.verdict == "regression"
    assert failed(result)


def test_programmatic_dependent_launch_shows_as_overlap() -> None:
    result = compared("nextn_after.node", "nextn_after_pdl.node")
    assert result.verdict == "no change"
    assert change(result, "pdl.overlap.share").status == "better"
    assert change(result, "step.intra_graph.p50").status == "better"
    assert "overlap gained: moe_down_kernel in verify, 42 nodes" in str(render("diff", result, "markdown"))


def test_losing_it_within_the_noise_is_no_alarm_and_folded_as_information() -> None:
    result = compared("nextn_after_pdl.node", "nextn_after.node")
    assert (result.verdict, result.suspects, result.offsets) == ("no change", [], [])
    text = str(render("diff", result, "markdown"))
    shown, _, folded = text.partition("<details><summary>What the program does otherwise</summary>")
    assert "overlap lost: moe_down_kernel in verify, 42 nodes" in folded
    assert "overlap" not in shown


def test_losing_it_again_is_named_if_so_little_counts() -> None:
    little = Options(gates=frozenset({"step.duration.mean"}), floors=Floors(gpu=0.002, host=0.1))
    result = compared("nextn_after_pdl.node", "nextn_after.node", little)
    assert result.verdict == "regression"
    assert (result.suspects[0].kind, result.suspects[0].confidence) == ("overlap lost", "high")
    (delta,) = result.deltas
    assert (delta.parts[0].name, delta.parts[0].nodes) == ("moe_down_kernel", 42)
    assert delta.parts[0].delta_ns == pytest.approx(27_000, abs=2_000)
    assert abs(delta.residual_ns) < 0.05 * delta.delta_ns


def test_node_and_graph_mode_compare_only_between_the_replays() -> None:
    refused = compared("nextn_before.node", "nextn_before.graph")
    assert refused.verdict == "incomparable"
    assert "graph and node mode" in refused.headline
    allowed = compared("nextn_before.node", "nextn_before.graph", Options(inter_only=True))
    assert allowed.verdict == "no change"
    assert {c.metric.split(".")[1] for c in allowed.changes} <= {
        "host_late", "launching", "queued", "unattributed", "inter_graph",
    }  # fmt: skip


def test_captures_without_the_graphs_work_compare_with_nothing() -> None:
    result = compared("dspark_before.nsys2023.graph", "dspark_before.nsys2023.graph")
    assert result.verdict == "incomparable"


def test_other_profilers_are_warned_about() -> None:
    warnings = " ".join(compared("nextn_before.node", "nextn_before.nsys2023.node").warnings)
    assert "Nsight Systems differs" in warnings


def test_idle_time_that_passes_to_another_cause_is_no_change_of_both() -> None:
    """Without its read the host is late all the same: of 12 ms charged to the read 1.4 ms went, not 12."""
    result = compared("hard_before.graph", "hard_after.graph")
    (delta,) = result.deltas
    assert result.suspects[0].kind == "gone wait"
    assert 0.8 < result.suspects[0].delta_ns / delta.delta_ns < 1.5
    assert sum(abs(part.delta_ns) for part in delta.parts) < 3 * abs(delta.delta_ns)


@pytest.mark.parametrize(("kind", "floor"), [("gpu", 0.01), ("host", 0.10)])
def test_separate_captures_of_one_program_are_no_change(kind: str, floor: float) -> None:
    names = [f"null_{kind}_{number}.graph" for number in (1, 2, 3)]
    for base, head in permutations(names, 2):
        result = compared(base, head)
        assert (result.verdict, result.confidence) == ("no change", "low")
        assert result.noise is not None
        assert result.noise.floor == pytest.approx(floor)
    for shuffled in permutations(names):
        result = diff([report(n) for n in names], [report(n) for n in shuffled])
        assert (result.verdict, result.confidence) == ("no change", "high")
    for two, one in (((0, 1), 2), ((0, 2), 1), ((1, 2), 0)):
        assert diff([report(names[n]) for n in two], [report(names[one])]).verdict == "no change"


def test_one_capture_in_two_exports_is_no_change_at_all() -> None:
    result = compared("dspark_before.node", "dspark_before.node_pqtdir")
    assert result.verdict == "no change"
    assert {c.status for c in result.changes} == {"same"}
    assert result.kernels == []


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_against_itself_is_no_change(name: str) -> None:
    result = compared(name, name)
    unseen = name == "dspark_before.nsys2023.graph"
    assert result.verdict == ("incomparable" if unseen else "no change")
    assert {c.status for c in result.changes} <= {"same", "unknown"}
    assert {f.status for f in result.findings} <= {"same", "unknown"}
    assert result.kernels == []


def test_every_pair_mirrors_its_reverse() -> None:
    names = ["nextn_before.node", "nextn_after_pdl.node", "hard_before.graph", "hard_after.graph", "tp2_after.graph"]
    for one, other in combinations(names, 2):
        there, back = compared(one, other), compared(other, one)
        assert MIRROR.get(there.verdict, there.verdict) == back.verdict
        assert there.refusals == back.refusals


def test_fewer_steps_of_the_same_are_no_change() -> None:
    path = SAMPLES / "nextn_before.graph.sqlite.xz"
    fewer = bubblefinder.analyze(path, steps=(0, 18))
    assert fewer.steps.count < report("nextn_before.graph").steps.count
    assert diff([report("nextn_before.graph")], [fewer]).verdict == "no change"
    slower = bubblefinder.analyze(SAMPLES / "nextn_before.node.sqlite.xz", steps=(0, 6))
    assert diff([report("nextn_after.node")], [slower]).verdict == "regression"
