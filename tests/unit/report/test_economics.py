from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import bubblefinder
from bubblefinder.compare.metrics import measure
from bubblefinder.economics.bench import read_bench
from bubblefinder.economics.shapes import load_shape
from bubblefinder.economics.traffic import Load
from bubblefinder.render.report import html, markdown, text
from bubblefinder.report.economics_build import Question
from tests.benches import sglang

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bubblefinder.report.model import Report

pytestmark = pytest.mark.usefixtures("read_once")


@pytest.fixture(scope="module")
def report(sample: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Report:
    bench = tmp_path_factory.mktemp("bench") / "bench.jsonl"
    bench.write_text(json.dumps(sglang("coding", accept_length=2.5, mean_tpot_ms=2.8, mean_itl_ms=7.0)))
    question = Question(
        shape=load_shape("sample-loop"), load=Load(draft_steps=3, draft_tokens=4), benches=read_bench(bench)
    )
    return bubblefinder.analyze(sample("nextn_after.node"), economics=question)


def test_a_report_has_the_section_only_when_asked(sample: Callable[[str], Path], report: Report) -> None:
    plain = bubblefinder.analyze(sample("nextn_after.node"))
    assert plain.economics is None
    for shown in (text.render(plain), markdown.render(plain), html.render(plain)):
        assert "Floor and speculation" not in shown
    assert report.economics is not None
    for shown in (text.render(report), markdown.render(report), html.render(report)):
        assert "Floor and speculation" in shown
        assert "6.286" in shown


def test_a_benchmark_is_held_against_the_step_without_the_profiler(report: Report) -> None:
    assert report.economics is not None
    (run,) = report.economics.served
    assert run.step_ns == 7_000_000
    mean = report.steps.per_step["duration"].mean
    assert mean is not None
    assert report.overhead.inflation is not None
    assert run.captured_ns is not None
    assert run.captured_ns == pytest.approx(mean / report.overhead.inflation, abs=1)
    assert run.off == pytest.approx(7e6 / run.captured_ns - 1, abs=1e-6)
    (note,) = run.notes
    assert note.startswith("its ITL of 7.00 ms is the step")


def test_budgets_know_floor_and_speculation(report: Report) -> None:
    known = {one.metric.id: one.value for one in measure(report)}
    assert known["floor.share"] == pytest.approx(0.179, abs=0.001)
    assert known["speculation.accept_length"] == 2.5
    assert known["speculation.tpot.mean"] == 2_800_000
    assert known["speculation.step.mean"] == 7_000_000


def test_a_model_that_did_not_run_is_named(sample: Callable[[str], Path]) -> None:
    question = Question(shape=load_shape("sample-loop"), load=Load(draft_steps=3, draft_tokens=4), bandwidth=2e11)
    said = text.render(bubblefinder.analyze(sample("nextn_after.node"), economics=question))
    assert "draft and verify and draft-extend took less time than the floor" in " ".join(said.split())


def test_drafts_that_are_never_taken_are_a_finding(sample: Callable[[str], Path]) -> None:
    def rules(accept: float | None) -> dict[str, str]:
        report = bubblefinder.analyze(sample("nextn_after.node"), economics=Question(accept_length=accept))
        return {finding.rule: finding.title for finding in report.findings}

    assert rules(1.0)["SPEC001"] == "Drafts run and none is accepted (accept length 1)"
    assert "SPEC001" not in rules(2.5)
    assert "SPEC001" not in rules(None)
