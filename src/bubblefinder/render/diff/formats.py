"""The formats that comparisons and judged budgets are written in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bubblefinder.compare.judge import Judged
    from bubblefinder.compare.model import Diff

DIFF_FORMATS: Final = {"text": ".txt", "json": ".json", "markdown": ".md", "html": ".html"}
JUDGED_FORMATS: Final = DIFF_FORMATS | {"junit": ".xml"}


def render_diff(diff: Diff, name: str, width: int | None = None) -> str:
    """Return the comparison in the named format; text fits a terminal `width` columns wide."""
    module = "bubblefinder.compare.json" if name == "json" else f"bubblefinder.render.diff.{name}"
    render: Callable[..., str] = import_module(module).render
    return render(diff, width) if name == "text" else render(diff)


def render_judged(judged: Judged, name: str, width: int | None = None) -> str:
    """Return the judged budget in the named format; text fits a terminal `width` columns wide."""
    render: Callable[..., str] = getattr(import_module("bubblefinder.render.judged"), name)
    return render(judged, width) if name == "text" else render(judged)


def format_of(path: Path, formats: Mapping[str, str]) -> str:
    """Return the format that a file's suffix names.

    Raises:
        UsageError: no format has it.
    """
    for name, suffix in formats.items():
        if path.name.lower().endswith(suffix):
            return name
    hint = "use one of " + " ".join(formats.values())
    raise UsageError(f"no format is written to files named like {path.name!r}", hint=hint)
