"""The command line as a whole: what every command says of itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bubblefinder.cli.app import app
from tests import processes

if TYPE_CHECKING:
    from collections.abc import Iterator


def commands(group: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name)) if hasattr(command, "commands") else [(*path, name)]


@pytest.mark.parametrize("path", list(commands(get_command(app))), ids=" ".join)
def test_options_are_named_for_what_they_take(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*path, "--help"])
    assert shown.exit_code == 0
    options = shown.stdout.partition("Options:")[2]
    assert options
    assert [line for line in options.splitlines() if "<" in line.replace("<=", "")] == []
    assert "......" not in shown.stdout


@pytest.mark.parametrize("path", [(), ("budget",), ("history",), ("rules",)], ids=" ".join)
def test_what_a_command_does_is_said_whole(path: tuple[str, ...]) -> None:
    listed = CliRunner().invoke(app, [*path, "--help"], terminal_width=80).stdout.partition("Commands:")[2]
    assert listed
    assert [line for line in listed.splitlines() if line.endswith("...")] == []


@pytest.mark.parametrize("path", list(commands(get_command(app))), ids=" ".join)
def test_arguments_are_shown_by_name_alone(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*path, "--help"], terminal_width=80).stdout
    usage, _, rest = shown.partition("\n\n")
    assert not set("{}<>") & set(usage)
    listed = rest.partition("Arguments:")[2].partition("\n\n")[0]
    assert not set("{}<>") & set(listed)
    assert "Options:" in rest


def test_usage_says_what_may_be_left_out_and_what_repeats() -> None:
    def usage(*path: str) -> str:
        return CliRunner().invoke(app, [*path, "--help"]).stdout.partition("\n")[0].partition("[OPTIONS] ")[2]

    assert usage("analyze") == "TRACE..."
    assert usage("slice") == "TRACE OUT"
    assert usage("batch") == "DIR|GLOB..."
    assert usage("rules", "test") == "[CASES]..."


@pytest.mark.parametrize("path", list(commands(get_command(app))), ids=" ".join)
def test_help_has_a_short_name(path: tuple[str, ...]) -> None:
    assert CliRunner().invoke(app, [*path, "-h"]).stdout == CliRunner().invoke(app, [*path, "--help"]).stdout


def test_installing_completion_says_what_it_edits() -> None:
    told = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    assert "writes a script to your home folder, and a line that loads it to ~/.bashrc, ~/.zshrc" in told


def test_a_call_makes_its_own_command_alone() -> None:
    script = (
        "import atexit, sys; from bubblefinder.cli.app import main; "
        "atexit.register(lambda: print(*(name for name in sys.modules if '.cli.' in name))); main()"
    )
    done = processes.run([sys.executable, "-c", script, "metrics", "--help"], check=True)
    made = {name.rpartition(".")[2] for name in done.stdout.splitlines()[-1].split()}
    assert made == {"app", "arguments", "metrics", "usage"}
