from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from bubblefinder.cli.app import app
from bubblefinder.errors import BubblefinderError, CannotAnswerError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Sample = Callable[[str], Path]

pytestmark = pytest.mark.usefixtures("read_once")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["whatif", *arguments], catch_exceptions=False)


def refuse(error: type[BubblefinderError], *arguments: str) -> str:
    with pytest.raises(error) as raised:
        run(*arguments)
    return f"{raised.value} {raised.value.hint}"


def test_every_fix_is_listed_with_the_step_then_and_the_best_order(sample: Sample) -> None:
    said = run(str(sample("hard_before.graph")), "--accept-length", "3").output
    told = " ".join(said.split())
    assert "takes 16.6 ms now, 181 tokens/s." in told
    assert max(map(len, said.splitlines())) <= 100
    assert "from 16.6 ms to 13.2 ms (11.7 ms to 15.0 ms between runs), 3.43 ms (20.7 %; 3.23 ms to 3.59 ms on" in told
    assert "1. FutureMap.resolve_seq_lens_cpu: 16.6 ms to 13.2 ms (11.7 ms to 15.0 ms), 3.43 ms" in told


def test_where_the_profilers_part_cant_be_told_there_are_ranges_alone(sample: Sample) -> None:
    trace = str(sample("eager_item"))
    said = run(trace, "--accept-length", "3").output
    told = " ".join(said.split())
    assert "takes 13.3 ms now, 225 tokens/s, of which up to 10.3 ms may be the profiler's own time." in told
    assert "capture eager (572 launches of eager as one CUDA graph)" in said
    assert said.index("1. capture eager: between ") < said.index("2. decode_step: with those above, between ")
    assert "12.4 ms less, 228 to 1071 tokens/s" in told
    asked = " ".join(run(trace, "--remove", "all").output.split())
    assert asked.endswith("155 us: up to 10.3 ms of the traced step may be the profiler's own time.")


def test_what_is_withheld_is_ordered_by_the_range_that_is_shown(sample: Sample) -> None:
    trace = str(sample("sglang/fi.node"))
    told = json.loads(run(trace, "--json").output)
    assert [one["number"] for one in told["order"]] == [8, 6, 7]
    ranges = [tuple(reversed(fix["recoverable_range_ns"])) for fix in told["fixes"]]
    assert max(ranges) == tuple(reversed(told["order"][0]["recoverable_range_ns"]))
    said = run(trace, "-f", "markdown").output
    assert "a gain's is of the fix alone: neither is the step now less the other." in said


def test_a_chain_names_all_its_waits(sample: Sample) -> None:
    said = run(str(sample("sglang/fi.node"))).output
    assert "the chain of waits (5 waits in a row" in said
    assert "cudaStreamSynchronize after eager after draft (twice)," in " ".join(said.split())
    assert "…" not in said


def test_changes_asked_for_are_replayed_together(sample: Sample) -> None:
    trace = str(sample("nextn_before.node"))
    said = run(trace, "--remove", "resolve", "--no-profiler", "--json").output
    asked = json.loads(said)["asked"]
    assert asked["bound"] == "GPU"
    assert asked["step_ns"] == pytest.approx(7_000_000, rel=0.01)
    assert asked["tokens_per_second"] is None
    alone = json.loads(run(trace, "--remove", "1", "--json").output)["asked"]
    assert alone["step_ns"] > asked["step_ns"]


def test_all_means_every_wait_and_nothing_else(sample: Sample) -> None:
    trace = str(sample("eager_item"))
    everything = json.loads(run(trace, "--remove", "all", "--json").output)["asked"]
    assert everything["recoverable_range_ns"][1] < 0.02 * json.loads(run(trace, "--json").output)["step_ns"]
    assert everything == json.loads(run(trace, "--remove", "1", "--json").output)["asked"]


def test_the_document_lists_fixes_and_their_order(sample: Sample) -> None:
    found = json.loads(run(str(sample("dspark_before.node")), "--json").output)
    assert found["schema"] == "bubblefinder.whatif/1"
    (fix,) = found["fixes"]
    assert (fix["number"], fix["name"]) == (1, "flashinfer.plan")
    assert [stage["number"] for stage in found["order"]] == [1]


@pytest.mark.parametrize(
    ("name", "phases"),
    [
        ("nextn_after.node", "every phase of the step is a graph."),
        ("workloads/sglang_plain.node", "the 15 kernels a step that are launched one by one are too few in a row to"),
    ],
)
def test_a_healthy_capture_has_nothing_to_fix_and_says_what_it_has_of_each_kind(
    sample: Sample, name: str, phases: str
) -> None:
    said = " ".join(run(str(sample(name))).output.split())
    assert f"Nothing to fix: no wait drained the GPU, the host is ahead, and {phases}" in said


def test_bounds_are_labelled_as_such(sample: Sample) -> None:
    trace = str(sample("nextn_after.node"))
    assert "note: a bound" in run(trace, "--close-gaps", "30").output
    assert "note: a bound" in run(trace, "--drop-kernels", "layer_norm").output


def test_a_host_speed_and_free_launches_can_be_asked_for(sample: Sample) -> None:
    said = run(str(sample("hard_after.graph")), "--host-speed", "2", "--free-launches").output
    assert "The step loses between 6.88 ms and 8.85 ms: part of the traced step may be" in " ".join(said.split())


def test_with_an_untraced_step_the_answer_is_for_the_host_that_gives_it(sample: Sample) -> None:
    trace = str(sample("sglang/switch.graph"))
    mean = json.loads(run(trace, "--tpot-ms", "4.105", "--accept-length", "2", "--remove", "all", "--json").output)
    median = json.loads(run(trace, "--untraced-step-ms", "8.07", "--remove", "all", "--json").output)
    traced = json.loads(run(trace, "--remove", "all", "--json").output)
    assert 1.3 < mean["host_speed"] < 1.7
    assert median["host_speed"] == pytest.approx(mean["host_speed"], rel=0.05)
    assert median["step_ns"] == pytest.approx(8_070_000, rel=0.001)
    assert traced["host_speed"] is None
    assert mean["step_ns"] < traced["step_ns"]
    said = " ".join(run(trace, "--untraced-step-ms", "8.07").output.split())
    assert "takes 8.07 ms without the profiler, as measured, on a host 1." in said


def test_the_profiler_is_taken_away_once(sample: Sample) -> None:
    trace = str(sample("nextn_before.graph"))
    assert "give one of them" in refuse(UsageError, trace, "--untraced-step-ms", "8", "--no-profiler")
    assert "belong together" in refuse(UsageError, trace, "--tpot-ms", "8")
    assert "times as fast as recorded takes" in refuse(CannotAnswerError, trace, "--untraced-step-ms", "2")


def test_wrong_questions_are_refused_with_what_can_be_asked(sample: Sample) -> None:
    node, graph = str(sample("nextn_before.node")), str(sample("nextn_before.graph"))
    assert "1 FutureMap.resolve_seq_lens_cpu" in refuse(UsageError, node, "--remove", "nothing like it")
    assert "not a regular expression" in refuse(UsageError, node, "--drop-kernels", "(")
    assert "fits no recorded kernel" in refuse(UsageError, graph, "--drop-kernels", "norm")
    assert "cuda-graph-trace=node" in refuse(CannotAnswerError, graph, "--close-gaps", "10")
    assert "GPU 0" in refuse(CannotAnswerError, node, "--gpu", "5")


def test_a_capture_without_graph_work_or_steps_cant_be_asked(sample: Sample) -> None:
    assert "export the .nsys-rep again" in refuse(CannotAnswerError, str(sample("dspark_before.nsys2023.graph")))
