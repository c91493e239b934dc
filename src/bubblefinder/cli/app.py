"""The command line: one line a command. Heavy libraries load inside the commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.completion import get_completion_inspect_parameters, install_callback, show_callback
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from bubblefinder.cli.arguments import BISECT
from bubblefinder.cli.usage import Command
from bubblefinder.errors import EXIT_OK, BubblefinderError, bugs_told, for_bisect
from bubblefinder.memory import collect_seldom, give_back_early

_COMMANDS: Final = (
    "analyze",
    "batch",
    "calibrate",
    "capture",
    "diff",
    "doctor",
    "floor",
    "metrics",
    "nightly",
    "report",
    "serve",
    "slice",
    "speculation",
    "whatif",
)
_GROUPS: Final[tuple[str, ...]] = ("budget", "history", "recipe", "rules")
_NAMES: Final = (*_COMMANDS, *_GROUPS)


@cache
def _made(name: str) -> TyperCommand | TyperGroup:
    """Make the command, or the group of commands, that a module of the same name defines."""
    module = import_module(f"bubblefinder.cli.{name}")
    alone = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    if name in _COMMANDS:  # its `Command` may parse arguments its own way
        alone.command(name, cls=getattr(module, "Command", Command))(getattr(module, name))
    else:
        group = getattr(module, name)
        for command in group.registered_commands:
            command.cls = Command
        alone.add_typer(group, name=name)
    return get_group(alone).commands[name]  # type: ignore[return-value]


class _Commands(Mapping[str, TyperCommand | TyperGroup]):
    """All commands by their names, each made when it is asked for: a call needs one of them."""

    def __getitem__(self, name: str) -> TyperCommand | TyperGroup:
        if name not in _NAMES:
            raise KeyError(name)
        return _made(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


class _Group(TyperGroup):
    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - they are typer's own
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]


app = typer.Typer(
    cls=_Group,
    name="bubblefinder",
    help="How much of an LLM decode step the GPU idles, which host call is to blame, and what a cure gives.",
    epilog="Start with: bubblefinder analyze TRACE.sqlite",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

get_completion_inspect_parameters()  # makes shells' scripts known, as typer does for options of its own


def _version(asked: bool) -> None:
    if asked:
        from bubblefinder._version import __version__

        typer.echo(f"bubblefinder {__version__} (Python {sys.version.split()[0]})")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    install_completion: Annotated[
        bool,
        typer.Option(
            "--install-completion",
            callback=install_callback,
            is_eager=True,
            help="Complete words in your shell: writes a script to your home folder, and a line that loads it to "
            "~/.bashrc, ~/.zshrc or what your shell reads.",
        ),
    ] = False,
    show_completion: Annotated[
        bool,
        typer.Option("--show-completion", callback=show_callback, is_eager=True, help="Print that script instead."),
    ] = False,
) -> None:
    """Nothing to do before a command."""


def main() -> None:
    """Run the command line; every error becomes one line, a hint and its exit code, or what --bisect makes of it."""
    give_back_early()
    collect_seldom()
    code = _run()
    sys.exit(for_bisect(code) if BISECT in sys.argv[1:] else code)


def _run() -> int:
    try:
        with bugs_told():
            app()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BubblefinderError as error:
        _say(f"error: {error}", error.hint)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()
    return EXIT_OK


def _say(message: str, hint: str) -> None:
    from bubblefinder.units import printable

    for line in message.splitlines():
        typer.echo(printable(line, 1000), err=True)
    if hint:
        typer.echo(f"hint: {printable(hint, 1000)}", err=True)
