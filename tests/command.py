"""The command line without a process of its own: the same entry point, streams and exit codes, a second sooner."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest import mock

from bubblefinder.cli.app import main

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left: its exit code, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object, cwd: Path | None = None) -> Done:
    """Run `bubblefinder` with these arguments."""
    raw = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(one, encoding="utf-8", write_through=True) for one in raw)
    code: object = 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", ["bubblefinder", *map(str, arguments)]))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        if cwd:
            stack.enter_context(contextlib.chdir(cwd))
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    return Done(code if isinstance(code, int) else 0, *(one.getvalue().decode() for one in raw))
