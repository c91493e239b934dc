"""The pages about comparing, budgets and CI say what is true of the commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from bubblefinder.cli.budget import budget
from bubblefinder.cli.history import history
from bubblefinder.cli.nightly import REPORTS, VERDICTS
from bubblefinder.compare.budget import load_budget
from bubblefinder.compare.judge import Outcome
from bubblefinder.compare.model import Verdict

ROOT = Path(__file__).parent.parent
DIFF, BUDGETS, CI = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("diff", "budgets", "ci"))


def test_every_verdict_is_explained() -> None:
    assert [verdict for verdict in get_args(Verdict) if f"| {verdict} |" not in DIFF] == []
    assert [outcome for outcome in get_args(Outcome) if f"| {outcome} |" not in BUDGETS] == []


def test_every_command_is_mentioned() -> None:
    for group, name in ((budget, "budget"), (history, "history")):
        for command in group.registered_commands:
            called = command.name or (command.callback.__name__ if command.callback else "")
            assert f"{name} {called}" in BUDGETS


def test_the_budget_on_the_page_is_a_good_one(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", BUDGETS, re.DOTALL)
    assert example is not None
    (tmp_path / "budget.toml").write_text(example[1])
    assert len(load_budget(tmp_path / "budget.toml").budget) == 3


def test_the_files_of_a_night_are_named() -> None:
    assert "`report.{html,json,md}` and `budget.{html,json,md,xml}`" in CI
    assert set(REPORTS) == {"report.html", "report.json", "report.md"}
    assert set(VERDICTS) == {"budget.html", "budget.json", "budget.md", "budget.xml"}


def test_the_actions_inputs_and_outputs_are_explained() -> None:
    action = (ROOT / "action.yml").read_text()
    inputs, outputs = re.split(r"^(?:outputs|runs):$", action, flags=re.MULTILINE)[:2]
    for part in (inputs.split("inputs:")[1], outputs):
        names = re.findall(r"^  ([a-z-]+):$", part, re.MULTILINE)
        assert len(names) >= 4
        assert [name for name in names if f"`{name}`" not in CI] == []


@pytest.mark.parametrize("used", sorted(set(re.findall(r"uses: (\S+)", CI))))
def test_the_actions_on_the_page_are_pinned(used: str) -> None:
    assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}|OWNER/bubblefinder(/comment)?@COMMIT", used)
