"""What holds for the arguments of every command, taken from the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from typer import Context
from typer.main import get_command

from bubblefinder.cli.app import app
from bubblefinder.errors import UsageError
from tests.command import run
from tests.generated import commands

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def cases(*, printed: bool) -> Iterator[Any]:
    """The arguments that name a file or a folder to write, with their commands: those without which it is printed."""
    for path, command in commands():
        for one in command.params:
            if "-o" in one.opts or one.name == "out" or one.opts[0] in {"--history", "--data"}:
                is_printed = "-o" in one.opts and not one.required and one.default is None
                if is_printed is printed:
                    yield pytest.param(command, one, id=" ".join((*path, one.opts[0])))


def dashed(command: Any, one: Any) -> dict[str, Any]:
    """What a command is told with `-` in that place, and something wherever there must be something."""
    needed = [other for other in command.params if other.required and other is not one]
    words = [word for other in needed for word in (*(other.opts[:1] if other.opts[0].startswith("-") else ()), "7")]
    place = [one.opts[0]] if one.opts[0].startswith("-") else []
    parent = Context(get_command(app), info_name="bubblefinder", help_option_names=["-h", "--help"])
    told: dict[str, Any] = command.make_context("it", [*words, *place, "-"], parent=parent).params
    return told


@pytest.mark.parametrize(("command", "one"), [*cases(printed=True)])
def test_a_dash_is_standard_output_where_results_are_printed_without_a_file(command: Any, one: Any) -> None:
    told = dashed(command, one)
    assert not told[one.name]
    assert told.get("quiet") in {None, False}


@pytest.mark.parametrize(("command", "one"), [*cases(printed=False)])
def test_a_dash_names_no_file_or_folder_elsewhere(command: Any, one: Any) -> None:
    with pytest.raises(UsageError, match=r"^(--\w+|out) - names no (file|folder)$"):
        dashed(command, one)


def test_the_functions_that_rules_know_are_printed_for_a_dash(tmp_path: Path) -> None:
    plain, dash = (run("rules", "functions", "sglang", *more, cwd=tmp_path) for more in ([], ["-o", "-"]))
    assert (plain.returncode, plain.stdout) == (0, dash.stdout)
    assert list(tmp_path.iterdir()) == []
