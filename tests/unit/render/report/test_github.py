"""Workflow commands: one a line, whatever the names hold."""

from __future__ import annotations

import re

from bubblefinder.render.report import github
from tests.unit.report.sample import finding, healthy_report, hostile_report, sample_report

COMMAND = re.compile(r"::(error|warning|notice) title=([^:,\n]*)::(.*)")


def test_the_verdict_is_a_notice_and_findings_follow_by_severity() -> None:
    lines = github.render(sample_report()).splitlines()
    commands = [COMMAND.fullmatch(line) for line in lines]
    assert [command and command[1] for command in commands] == ["notice", "error", "warning"]
    assert "28.8 %25 of the decode time" in lines[0]
    assert "%0Aa step: bubble 1.60 ms, " in lines[1]


def test_a_healthy_run_has_only_the_verdict() -> None:
    assert len(github.render(healthy_report()).splitlines()) == 1


def test_names_start_no_command_of_their_own() -> None:
    for line in github.render(hostile_report()).splitlines():
        assert COMMAND.fullmatch(line)
        assert "\x1b" not in line


def test_only_as_many_as_github_shows() -> None:
    lines = github.render(sample_report(findings=[finding() for _ in range(30)])).splitlines()
    assert len([line for line in lines if line.startswith("::")]) == 10
    assert lines[-1].startswith("21 more findings")
