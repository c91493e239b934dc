"""`bubblefinder doctor` for people and for programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.report.examination import examine
from bubblefinder.trace.drawn import draw

pytestmark = pytest.mark.usefixtures("read_once")

SAMPLES = Path(__file__).parents[3] / "sample_traces"


def asked(*options: str) -> str:
    done = CliRunner().invoke(app, ["doctor", str(SAMPLES / "nextn_before.graph.sqlite.xz"), *options])
    assert done.exit_code == 0
    return done.stdout


def test_programs_get_json() -> None:
    told = json.loads(asked("--json"))
    assert told["schema"] == "bubblefinder.doctor/1"
    assert told["trace"]["nsys_version"] == "2025.3.2.0"
    assert told["rows"]["graph replay"] == 90
    assert told["answers"]["how long is it idle inside a graph"].startswith("no: ")
    assert {note["level"] for note in told["quality"]} == {"info"}
    assert told["command"].startswith("nsys profile")


def test_kinds_of_personal_data_as_text_and_as_json() -> None:
    told = json.loads(asked("--json", "--privacy"))
    assert told["schema"] == "bubblefinder.privacy/1"
    kinds = {row["kind"] for row in told["personal"]}
    assert "processes of the machine" in kinds
    assert all(any(line.startswith(kind) for line in asked("--privacy").splitlines()) for kind in kinds)


@pytest.mark.parametrize("capture", ["full.graph", "full.node", "piecewise.node", "sync.graph", "batch_8.graph"])
def test_vllm_is_recognised_and_its_own_switch_told_alone(capture: str) -> None:
    done = CliRunner().invoke(app, ["doctor", str(SAMPLES / f"vllm/{capture}.sqlite.xz"), "--json"])
    answers = json.loads(done.stdout)["answers"]
    assert [question for question in answers if question.startswith("what would name")] == [
        "what would name vllm's code"
    ]
    assert "VLLM_NVTX_SCOPES_FOR_PROFILING=1" in answers["what would name vllm's code"]


@pytest.mark.parametrize("capture", ["sync_nvtx.node", "functions.graph"])
def test_vllm_is_told_no_switch_that_is_on_nor_names_that_are_there(capture: str) -> None:
    """The switch opens no range around the second model runner's parts of a step, but around its scheduler's."""
    done = CliRunner().invoke(app, ["doctor", str(SAMPLES / f"vllm/{capture}.sqlite.xz"), "--json"])
    assert "VLLM_NVTX" not in done.stdout
    begins = json.loads(done.stdout)["answers"]["where does a decode step begin"]
    assert "by nvtx (execute_context_#(#)_generation_#(#))" in begins


def test_tensorrt_llm_is_told_its_switch_as_far_as_its_threads_show_it() -> None:
    trace = draw("api | A.\ngpu0 s7 | .A\nA = kernel gemm", us_per_char=1)
    named = replace(trace, thread_names={int(trace.calls["thread"][0]): "tensorrt_llm worker"})
    answers = dict(examine(named).answers)
    assert "TLLM_LLMAPI_ENABLE_NVTX=1" in answers["what would name tensorrt-llm's code"]
    assert "cost: not measured" in answers["what would name tensorrt-llm's code"]


@pytest.mark.parametrize(
    ("capture", "told"),
    [("sglang/fi.graph", True), ("sglang/fi_nvtx.node", False), ("sglang/fi_functions.graph", False)],
)
def test_the_switch_that_names_an_engines_code_is_told_where_the_capture_lacks_names(capture: str, told: bool) -> None:
    done = CliRunner().invoke(app, ["doctor", str(SAMPLES / f"{capture}.sqlite.xz"), "--json"])
    answers = json.loads(done.stdout)["answers"]
    assert not any("tensorrt" in question for question in answers)
    assert ("what would name sglang's code" in answers) == told
    assert not told or "SGLANG_ENABLE_NVTX_SCHEDULER=1" in answers["what would name sglang's code"]
