"""The formats a report can be written in: one line a format."""

from __future__ import annotations

import gzip
import os
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.model import Report


@dataclass(frozen=True, slots=True)
class Format:
    """A name for ``-f``, the suffixes ``-o`` knows it by, and where its renderer is.

    A format that is `linked` names the full report by its URL.
    """

    name: str
    suffixes: tuple[str, ...]
    module: str
    function: str = "render"
    linked: bool = False


_TRACES: Final = (".perfetto.json", ".trace.json", ".perfetto.json.gz", ".trace.json.gz")
FORMATS: Final = {
    entry.name: entry
    for entry in (
        Format("text", (".txt",), "render.report.text"),
        Format("json", (".json",), "report.json"),
        Format("html", (".html", ".htm"), "render.report.html"),
        Format("markdown", (".md",), "render.report.markdown", linked=True),
        Format("summary", (".summary.md",), "render.report.markdown", "render_summary", linked=True),
        Format("junit", (".junit.xml", ".xml"), "render.report.junit"),
        Format("github", (".github.txt",), "render.report.github"),
        Format("perfetto", _TRACES, "render.report.perfetto"),
        Format("csv", (".csv",), "render.report.csv"),
        Format("parquet", (".parquet",), "render.report.csv", "render_parquet"),
    )
}


def format_for(path: Path) -> Format:
    """Return the format whose longest suffix ends the file's name.

    Raises:
        UsageError: no format has such a suffix.
    """
    known = {suffix: entry for entry in FORMATS.values() for suffix in entry.suffixes}
    fitting = [suffix for suffix in known if path.name.lower().endswith(suffix)]
    if not fitting:
        raise UsageError(
            f"no format is written to files named like {path.name!r}", hint="use one of " + " ".join(sorted(known))
        )
    return known[max(fitting, key=len)]


def render(report: Report, name: str, *, report_url: str = "") -> str | bytes:
    """Return the report in the named format; Markdown links to the full report at `report_url`."""
    entry = FORMATS[name]
    draw: Callable[..., str | bytes] = getattr(import_module(f"bubblefinder.{entry.module}"), entry.function)
    return draw(report, report_url) if entry.linked else draw(report)


def write(report: Report, path: Path, *, report_url: str = "") -> None:
    """Write the report to `path` in the format its suffix names, packed if it ends in .gz, whole or not at all.

    Raises:
        UsageError: the suffix is unknown, or the folder is missing.
    """
    entry = format_for(path)
    content = render(report, entry.name, report_url=report_url)
    encoded = content.encode() if isinstance(content, str) else content
    write_whole(path, gzip.compress(encoded, mtime=0) if path.suffix.lower() == ".gz" else encoded)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all.

    Raises:
        UsageError: the folder is missing, or the file can't be written.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:40]}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
    except OSError as error:
        raise UsageError(
            f"{path} can't be written: {error.strerror}", hint="check the folder and the space left on it"
        ) from error
    try:
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(
            f"{path} can't be written: {error.strerror}", hint="give the name of a file, not of a folder"
        ) from error


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
