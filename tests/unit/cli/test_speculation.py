from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("read_once")

SWEEP = [word for point in ("3:4:3.11:1.51", "4:5:3.37:1.45", "5:6:3.45:1.55") for word in ("--point", point)]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["speculation", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_best_depth_comes_first() -> None:
    said = run(*SWEEP)
    assert said.startswith("Draft depth 4/5 is the fastest here")
    assert "4/5 to 5/6        9.4 %          3.69  3.45  loses" in said
    assert json.loads(run(*SWEEP, "--json"))["best"] == "4/5"


def test_the_residual_is_shown_and_not_explained() -> None:
    said = run("--point", "3:4:3.90:9.72", "--plain-ms", "22.76", "--cost", "2.26")
    assert "1.73 times as fast. Measured: 2.34 times. The difference of +0.62 is unexplained." in said
    assert "about 51 ms" in said


def test_an_accept_length_of_one_names_candidates_and_concludes_nothing() -> None:
    said = run("--point", "3:4:1.00:40")
    assert "no draft token is taken" in said
    assert "Candidates:" in said


def test_a_report_is_a_run_once_it_says_what_was_accepted(sample: Callable[[str], Path], tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    meta = [word for pair in ("draft_steps=3", "draft_tokens=4", "accept_length=2.5") for word in ("--meta", pair)]
    runner = CliRunner()
    path = str(sample("nextn_after.node"))
    assert runner.invoke(app, ["analyze", path, "-q", "-o", str(report), *meta]).exit_code == 0
    (point,) = json.loads(run(str(report), "--json"))["points"]
    document = json.loads(report.read_text())
    untraced = document["steps"]["per_step"]["duration"]["mean"] / document["overhead"]["inflation"]
    assert point["step_ms"] == pytest.approx(untraced / 1e6)
    assert point["tpot_ms"] == pytest.approx(untraced / 1e6 / 2.5)
    asked = ("--accept-length", "2.5", "--draft-steps", "3", "--draft-tokens", "4")
    assert json.loads(run(path, "-q", *asked, "--json"))["points"] == [point]
    assert runner.invoke(app, ["analyze", path, "-q", "-o", str(report)]).exit_code == 0
    with pytest.raises(UsageError, match="doesn't say how deep it drafts"):
        runner.invoke(app, ["speculation", str(report)], catch_exceptions=False)


def test_of_a_capture_what_is_wrong_is_named_by_its_option(sample: Callable[[str], Path]) -> None:
    path = str(sample("nextn_after.node"))

    def refuse(*options: str) -> str:
        with pytest.raises(UsageError) as raised:
            CliRunner().invoke(app, ["speculation", path, "-q", *options], catch_exceptions=False)
        return f"{raised.value} {raised.value.hint}"

    said = refuse("--accept-length", "2")
    assert "2.0 tokens can't be accepted of 1 with 0 draft steps" in said
    assert "between 1 and the 1 position of a verify pass" in said
    assert "--draft-tokens" in said
    assert "--point" not in said
    assert "are no run" in refuse("--accept-length", "0", "--draft-tokens", "4")


def test_nothing_given() -> None:
    with pytest.raises(UsageError, match="no run was given"):
        CliRunner().invoke(app, ["speculation"], catch_exceptions=False)
