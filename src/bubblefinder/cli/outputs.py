"""What the commands that compare share: reading captures or reports, and writing what came out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from bubblefinder.report.model import Report


def load_all(paths: Sequence[Path], *, quiet: bool, launch_shapes: bool = False) -> list[Report]:
    """Return the reports on captures, or those that files hold, showing progress."""
    from bubblefinder.cli.common import stages
    from bubblefinder.compare.source import load

    with stages(quiet=quiet) as progress:
        return [load(path, progress, launch_shapes=launch_shapes) for path in paths]


def today() -> date:
    """Return the day, for waivers."""
    from datetime import UTC, datetime

    return datetime.now(UTC).date()


class Outputs:
    """Where a result goes: files by their suffix, and standard output. Checked before anything is loaded."""

    def __init__(self, formats: Mapping[str, str], form: str, paths: Sequence[Path], *, quiet: bool = False) -> None:
        """Refuse formats and files that can't be written.

        Raises:
            UsageError: an unknown format or suffix, or a missing folder.
        """
        from bubblefinder.render.diff.formats import format_of

        if form not in formats:
            raise UsageError(f"there is no format {form!r} here", hint="use one of " + " ".join(formats))
        self._form, self._quiet = form, quiet
        self._files = {path: format_of(path, formats) for path in paths}
        for path in paths:
            check_target(path)

    def emit(self, render: Callable[[str, int | None], str]) -> None:
        """Write the files, then print the result unless the files were all that was wanted.

        `render` is given a format and how wide the terminal is, if there is one.
        """
        from bubblefinder.cli.common import terminal_width
        from bubblefinder.render.formats import write_whole

        for path, form in self._files.items():
            write_whole(path, render(form, None).encode())
            if not self._quiet:
                typer.echo(f"wrote {path}", err=True)
        if not (self._quiet and self._files):
            typer.echo(render(self._form, terminal_width()), nl=False)


def check_target(path: Path) -> None:
    """Refuse a file that can't be written.

    Raises:
        UsageError: its folder is missing.
    """
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {str(path.parent)!r} to write {path.name!r} to")
