"""Budget files: everything that is wrong is told at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.budget import load_budget
from bubblefinder.errors import EXIT_USAGE, UsageError

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
version = 1

[[budget]]
metric = "step.duration.p50"
where = { rank = 0 }
max = "7.4 ms"
regress = "2 %"
severity = "warn"
why = "agreed"
owner = "decode team"
until = 2026-12-31
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "budget.toml"
    path.write_text(text)
    return path


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(UsageError) as error:
        load_budget(written(tmp_path, text))
    assert error.value.exit_code == EXIT_USAGE
    return str(error.value)


def test_a_budget_is_read(tmp_path: Path) -> None:
    budget = load_budget(written(tmp_path, GOOD)).budget[0]
    assert budget.limit("max") == 7_400_000
    assert budget.limit("min") is None
    assert budget.tolerance == pytest.approx(0.02)
    assert budget.until is not None
    assert budget.until.isoformat() == "2026-12-31"


def test_everything_wrong_is_told_at_once_with_lines_and_guesses(tmp_path: Path) -> None:
    message = refused(
        tmp_path,
        """
version = 1

[[budget]]
metric = "step.duraton.p50"
wher = { rank = 0 }
[[budget]]
metric = "bubble.share.total"
maxx = 0.2
[[budget]]
metric = "waits.per_step"
max = true
severity = "fatal"
""",
    )
    assert len(message.splitlines()) == 5
    for told in (
        "line 5, budget 1, metric: there is no metric 'step.duraton.p50'; did you mean 'step.duration.p50'?",
        "line 6, budget 1, wher: unknown key; did you mean 'where'?",
        "line 9, budget 2, maxx: unknown key; did you mean 'max'?",
        "line 12, budget 3, max: input should be a valid number or input should be a valid string",
        "line 13, budget 3, severity: input should be 'error' or 'warn'",
    ):
        assert told in message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('metric = "step.duration.p50"', "it has no limit"),
        ('metric = "step.duration.p50"\nmax = 7', "write one with its unit"),
        ('metric = "step.duration.p50"\nmax = "1 ms"\nmin = "2 ms"', "min is above max"),
        ('metric = "step.duration.p50"\nmax = "1 ms"\nuntil = 2026-12-31', "needs why and owner"),
        ('metric = "step.duration.p50"\nwhere = { role = "draft" }\nmax = "1 ms"', "no dimension 'role'"),
        ('metric = "role.nodes"\nregress = 0.1', "neither better high nor low"),
        ('metric = "step.duration.p50"\nregress = -0.1', "it is below 0"),
        ('metric = "step.duration.p50"\nregress = "much"', "'much' is no share"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(tmp_path: Path, body: str, said: str) -> None:
    assert said in refused(tmp_path, f"version = 1\n[[budget]]\n{body}\n")


def test_a_limit_of_an_unknown_metric_is_looked_at_by_itself(tmp_path: Path) -> None:
    file = 'version = 1\n[[budget]]\nmetric = "step.p5"\nmax = {}\n'
    assert "'3 apples' is no time, share or count" in (both := refused(tmp_path, file.format('"3 apples"')))
    assert "there is no metric 'step.p5'" in both
    for good in ('"3 ms"', '"3 %"', "3"):
        assert len(refused(tmp_path, file.format(good)).splitlines()) == 1
    serving = f'version = 1\n[[scenario]]\nname = "coding"\nconcurrency = [1]\n{file[12:]}'
    serving = serving.replace("[[budget]]", "[[scenario.budget]]").format('"3 apples"')
    assert "'3 apples' is no time, share or count" in refused(tmp_path, serving)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version = 2\nbudget = []", "line 1, version: input should be 1"),
        ("budget = []", "budget.toml: version: is missing"),
        ("version = 1\n", "budget.toml: it has no limit; write a [[budget]] or a [[scenario]]"),
        ("version = 1\n[[budget]]\nmax = 1\n", "line 2, budget 1, metric: is missing"),
        ("version = 1\nbudget = []", "budget.toml: it has no limit"),
        ("version = ", "not TOML"),
    ],
)
def test_other_versions_and_broken_files_are_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, text)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        load_budget(tmp_path / "none.toml")
