"""What `analyze` and `whatif` say of the step without the profiler, against steps that were measured with no profiler.

Wall-clock medians of the very runs that were captured; several repeats where three figures stand.
"""

from __future__ import annotations

import json
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.errors import CannotAnswerError
from bubblefinder.overhead.calibration import bundled_calibrations, encode_calibration
from bubblefinder.overhead.model import Source
from bubblefinder.replay.correct import correct
from bubblefinder.replay.predict import predict
from tests import samples
from tests.integration import test_engines_again, test_sglang, test_vllm, test_workload_truths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Sample = Callable[[str], Path]

pytestmark = pytest.mark.usefixtures("read_once")

MS = 1_000_000
UNTRACED = {
    "nextn_after.node": (7.014, 7.015, 7.018),
    "dspark_after.node": (7.019, 7.023, 7.039),
    "nextn_after_pdl.node": (7.052, 7.052, 7.055),
    "dspark_before.node": (7.137, 7.143, 7.188),
    "nextn_before.node": (8.40, 8.56, 9.02),
    "nextn_before.graph": (8.44, 8.51, 9.60),
    "eager_item": (10.8, 11.5, 11.9),
    "tp2_before.node": (6.10, 6.14, 6.19),
    "torch_adaptive.node": (1.889,),
    "torch_batches.node": (0.911,),
    "torch_prefill.node": (0.936,),
    "torch_piecewise.node": (0.943,),
    "torch_eager": (0.685,),
}
CANT_TELL = {"eager_item", "torch_piecewise.node", "torch_eager"}


SLOW = {"sglang/hybrid.graph", "sglang/logprob.graph", "vllm/full.node"}
"""Other processes whose GPU worked 2 % faster, and a host more than four times slower as traced."""
KNOWN_MS = {
    **{name: median(times) for name, times in UNTRACED.items()},
    **{name: known.median for name, known in test_engines_again.KNOWN.items() if known.median},
    **{name: (known.low + known.high) / 2 for name, known in test_sglang.UNTRACED.items()},
    **{name: sum(ends) / 2 for name, ends in test_vllm.UNTRACED.items()},
    **{f"workloads/{name}": step for name, step in test_workload_truths.VLLM_MS.items()},
    "nextn_before.nsys2023.node": 8.56,
}
"""Every sample whose step without the profiler is known."""


def asked(path: Path) -> dict[str, object]:
    said = CliRunner().invoke(app, ["whatif", str(path), "--no-profiler", "--json"], catch_exceptions=False)
    answer: dict[str, object] = json.loads(said.output)["asked"]
    return answer


@pytest.mark.parametrize("name", UNTRACED)
def test_both_commands_give_one_answer_and_the_truth_lies_in_its_range(sample: Sample, name: str) -> None:
    overhead = samples.report(name).overhead
    low, high = overhead.range_ns or (0, 0)
    assert any(low <= step * MS <= high for step in UNTRACED[name])
    if name in CANT_TELL:
        assert overhead.corrected_step_ns is None
        with pytest.raises(CannotAnswerError, match="can't be told from this capture"):
            asked(sample(name))
        return
    answer = asked(sample(name))
    assert answer["step_ns"] == overhead.corrected_step_ns
    assert answer["range_ns"] == list(overhead.range_ns or ())


@pytest.mark.parametrize("name", ["torch_eager", "nextn_before.node"])
def test_where_it_cant_be_told_every_answer_says_how_much_may_be_the_profilers(sample: Sample, name: str) -> None:
    said = CliRunner().invoke(app, ["whatif", str(sample(name)), "--json"], catch_exceptions=False)
    overhead = samples.report(name).overhead
    low, _ = overhead.range_ns or (0, 0)
    told = (overhead.traced_step_ns or 0) - low if name in CANT_TELL else None
    assert json.loads(said.output)["profilers_ns"] == told


@pytest.mark.parametrize("name", sorted(CANT_TELL))
def test_no_gain_on_top_of_the_untraced_step_is_told_where_that_step_cant_be(sample: Sample, name: str) -> None:
    with pytest.raises(CannotAnswerError, match="lies between"):
        CliRunner().invoke(
            app, ["whatif", str(sample(name)), "--host-speed", "2", "--no-profiler"], catch_exceptions=False
        )


@pytest.mark.parametrize("name", ["nextn_before.nsys2023.node"])
def test_both_say_so_where_nothing_is_known_of_the_profiler(sample: Sample, name: str) -> None:
    assert samples.report(name).overhead.corrected_step_ns is None
    with pytest.raises(CannotAnswerError, match="doesn't name its collector"):
        asked(sample(name))


@pytest.mark.parametrize("name", sorted(KNOWN_MS))
def test_a_measured_step_has_one_account_of_what_tracing_cost_and_how_fast_the_host_is(name: str) -> None:
    """A report and `whatif` say the same of it, and the one gives up where the other has a part left unexplained."""
    analysis, step = samples.analysis(name), KNOWN_MS[name] * MS
    rank, mean = analysis.study.ranks[0], name in {"tp2_before.node", "sglang/switch.graph"}
    rows = analysis.steps.windows.filter(rank.mine & pl.col("excluded").is_null())
    source = Source(untraced_step_ns=step, untraced_is_mean=mean)
    told = correct(analysis.timeline, analysis.steps, analysis.model, rows, source)
    assert told.range_ns == (told.corrected_step_ns, told.corrected_step_ns)
    missed = abs(told.unexplained_ns or 0)
    if missed > 0.01 * step:
        assert name in SLOW
        with pytest.raises(CannotAnswerError, match="nothing known of this run gives a step of"):
            analysis.study.at_untraced(rank, step, mean=mean)
        return
    study = analysis.study.at_untraced(rank, step, mean=mean)
    assert study.host_speed == told.parameters["host_speed"]
    assert predict(study.model, [])[rank].step_ns == pytest.approx(told.corrected_step_ns, abs=missed + 2)
    assert mean or told.corrected_step_ns == round(step)


def test_both_commands_take_the_same_measured_step_and_calibration(sample: Sample, tmp_path: Path) -> None:
    trace, report = str(sample("nextn_before.node")), tmp_path / "report.json"
    known = ["--tpot-ms", "4.28", "--accept-length", "2", "--calibration", str(calibration(tmp_path))]
    assert CliRunner().invoke(app, ["analyze", trace, *known, "-o", str(report)]).exit_code == 0
    answer = json.loads(CliRunner().invoke(app, ["whatif", trace, *known, "--json"]).output)
    overhead = json.loads(report.read_bytes())["overhead"]
    assert answer["step_ns"] == pytest.approx(overhead["corrected_step_ns"], abs=2)
    assert answer["host_speed"] == overhead["parameters"]["host_speed"] != 1


def calibration(folder: Path) -> Path:
    """The bundled calibration at twice the price."""
    (one,) = bundled_calibrations()
    path = folder / "dear.json"
    path.write_bytes(encode_calibration(replace(one, node=one.node.scaled(2))))
    return path
