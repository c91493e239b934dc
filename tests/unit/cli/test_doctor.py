from __future__ import annotations

from typing import TYPE_CHECKING

from typer.testing import CliRunner

from bubblefinder.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_capture_is_told_by_what_it_can_answer(sample: Callable[[str], Path]) -> None:
    said = CliRunner().invoke(app, ["doctor", str(sample("nextn_before.graph"))]).output
    assert "how long is it idle inside a graph? no: each replay is one block" in " ".join(said.split())
    assert said.rstrip().splitlines()[-1].startswith("To learn more: nsys profile")


def test_a_report_is_no_capture(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{}")
    assert CliRunner().invoke(app, ["doctor", str(tmp_path / "report.json")]).exit_code
