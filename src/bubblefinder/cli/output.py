"""Where results go: files, standard output, and the progress on a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from bubblefinder.ending import begun
from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from bubblefinder.render.formats import Document
    from bubblefinder.report.model import Report


class Outputs:
    """Where a document goes: files by their suffix, and standard output. Checked before anything is loaded."""

    def __init__(self, document: Document, form: str | None, paths: Sequence[Path] | None, *, quiet: bool) -> None:
        """Refuse formats and files that can't be written.

        Raises:
            UsageError: an unknown format or suffix.
        """
        from bubblefinder.render.formats import format_for, formats_of

        known = formats_of(document)
        if form is not None and form not in known:
            raise UsageError(f"there is no format {form!r} here", hint="use one of " + " ".join(known))
        self._document, self._form, self._paths, self._quiet = document, form or "text", list(paths or ()), quiet
        self._takes_lines, self._are_lines = form is None, False
        for path in self._paths:
            format_for(document, path)

    def emit(self, value: object, *, url: str = "", verbose: bool = False) -> None:
        """Write the files, making their folders, then print the document unless the files were all that was wanted.

        Markdown links to the full report at `url`; `verbose` prints every note of a report.
        """
        from bubblefinder.render.formats import write

        for path in self._paths:
            make_folder(path)
            write(self._document, value, path, url=url)
        if self._prints() and not self._are_lines:
            self._print(value, url, verbose=verbose)
        for path in self._paths:
            if not self._quiet:
                typer.echo(f"wrote {path}", err=True)

    def tell(self, line: str, report: Report | None = None) -> None:
        """Print a line on a part of the document as it is done, and the whole of what it is about where that is given.

        They take the place of the document; where a format was named, nothing is printed.
        """
        if self._takes_lines:
            self._are_lines = True
            if self._prints():
                say(line)
                if report:
                    _print_report(report, verbose=True)

    def _prints(self) -> bool:
        return not (self._quiet and self._paths)

    def _print(self, value: object, url: str, *, verbose: bool) -> None:
        """Print as wide as the terminal is; a report is coloured there."""
        from bubblefinder.render.formats import encoded, render
        from bubblefinder.render.kit.text import page_width
        from bubblefinder.report.model import Report

        if isinstance(value, Report) and self._form == "text":
            _print_report(value, verbose=verbose)
            return
        content = encoded(render(self._document, value, self._form, width=page_width(), url=url))
        sys.stdout.buffer.write(content if content.endswith(b"\n") or self._form == "parquet" else content + b"\n")
        sys.stdout.flush()


def _print_report(report: Report, *, verbose: bool) -> None:
    from bubblefinder.render.report.text import print_text

    print_text(report, verbose=verbose)


def make_folder(path: Path) -> None:
    """Make the folder that a file is to be written to.

    Raises:
        UsageError: it can't be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the folder {str(path.parent)!r} can't be made: {error.strerror}", hint="name another with -o"
        ) from error


def say(line: str, indent: str = "") -> None:
    """Print a line, in several where the terminal is narrower, all but the first indented."""
    from bubblefinder.render.kit.text import page_width, prose

    typer.echo(prose(line, page_width(), indent))


@contextmanager
def stages(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show on a terminal's stderr which stage runs; yields the function to call as each begins."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("load") as status, begun(status.stop):  # the cursor would stay hidden
        yield status.update
