"""The formats a comparison can be written in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import UsageError
from bubblefinder.report.formats import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.compare.model import Diff

FORMATS: Final = {"text": ".txt", "json": ".json", "markdown": ".md", "html": ".html"}


def render(diff: Diff, name: str) -> str:
    """Return the comparison in the named format."""
    text: str = import_module(f"bubblefinder.compare.render.{name}").render(diff)
    return text


def format_of(path: Path) -> str:
    """Return the format that a file's suffix names.

    Raises:
        UsageError: no format has it.
    """
    for name, suffix in FORMATS.items():
        if path.name.lower().endswith(suffix):
            return name
    hint = "use one of " + " ".join(FORMATS.values())
    raise UsageError(f"no comparison is written to files named like {path.name!r}", hint=hint)


def write(diff: Diff, path: Path) -> None:
    """Write the comparison in the format the suffix names; the file appears whole or not at all."""
    write_whole(path, render(diff, format_of(path)).encode())
