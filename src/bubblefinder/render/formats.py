"""The formats that each document can be written in: one line a format."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from bubblefinder.ending import temporary_folder
from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Document = Literal["report", "diff", "budget", "prediction", "trend", "floor", "speculation", "fleet"]


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write one kind of document.

    Attributes:
        document: what is written.
        name: for ``-f``.
        suffixes: those ``-o`` knows it by.
        writer: ``module:function`` below the package.
        of: ``module:function`` that makes what the writer takes of the document; empty if it takes the document.
        takes: what else the writer is given: the terminal's `width`, or the `url` of the full report.
    """

    document: Document
    name: str
    suffixes: tuple[str, ...]
    writer: str
    of: str = ""
    takes: Literal["", "width", "url"] = ""


_REPORTS: Final = (
    Format("report", "text", (".txt",), "render.report.text:render"),
    Format("report", "json", (".json",), "report.json:render"),
    Format("report", "html", (".html", ".htm"), "render.report.html:render"),
    Format("report", "markdown", (".md",), "render.report.markdown:render", takes="url"),
    Format("report", "summary", (".summary.md",), "render.report.markdown:render_summary", takes="url"),
    Format("report", "junit", (".junit.xml", ".xml"), "render.report.junit:render"),
    Format("report", "github", (".github.txt",), "render.report.github:render"),
    Format(
        "report",
        "perfetto",
        (".perfetto.json", ".trace.json", ".perfetto.json.gz", ".trace.json.gz"),
        "render.report.perfetto:render",
    ),
    Format("report", "csv", (".csv",), "render.report.csv:render"),
    Format("report", "parquet", (".parquet",), "render.report.csv:render_parquet"),
)
_MODULES: Final[dict[Document, str]] = {
    "diff": "render.diff.sheet",
    "budget": "render.budget",
    "prediction": "render.prediction",
    "trend": "render.trend",
    "floor": "render.floor",
    "speculation": "render.speculation",
    "fleet": "render.fleet",
}
"""Where a document's `sheet` and `records` are made, of which the kit writes most formats."""
_OF_SHEETS: Final[tuple[tuple[str, tuple[str, ...], str, Literal["", "width", "url"]], ...]] = (
    ("text", (".txt",), "render.kit.text:write", "width"),
    ("html", (".html", ".htm"), "render.kit.html:write", ""),
    ("markdown", (".md",), "render.kit.markdown:write", "url"),
    ("summary", (".summary.md",), "render.kit.markdown:summary", "url"),
    ("github", (".github.txt",), "render.kit.github:write", ""),
)
_OWN: Final = (
    Format("diff", "html", (".html", ".htm"), "render.diff.html:write"),
    Format("diff", "json", (".json",), "report.json:render"),
    Format("diff", "junit", (".junit.xml", ".xml"), "render.kit.junit:write", "render.diff.sheet:sheet"),
    Format("budget", "json", (".json",), "report.json:render"),
    Format("budget", "junit", (".junit.xml", ".xml"), "render.kit.junit:write", "render.budget:sheet"),
    Format("prediction", "text", (".txt",), "render.prediction:text", takes="width"),
    Format("prediction", "json", (".json",), "render.prediction:json"),
    Format("trend", "text", (".txt",), "render.trend:text", takes="width"),
    Format("trend", "html", (".html", ".htm"), "render.trend:html"),
    Format("trend", "json", (".json",), "report.json:render", "render.trend:document"),
    Format("floor", "json", (".json",), "report.json:render", "render.floor:document"),
    Format("speculation", "json", (".json",), "report.json:render", "render.speculation:document"),
    Format("fleet", "json", (".json",), "report.json:render", "render.fleet:document"),
    Format("fleet", "parquet", (".parquet",), "render.fleet:parquet"),
)
_SHARED: Final = (
    *(
        Format(document, name, suffixes, writer, f"{module}:sheet", takes)
        for document, module in _MODULES.items()
        for name, suffixes, writer, takes in _OF_SHEETS
    ),
    *(
        Format(document, "csv", (".csv",), "render.kit.csv:write", f"{module}:records")
        for document, module in _MODULES.items()
    ),
)
FORMATS: Final = tuple({(one.document, one.name): one for one in (*_REPORTS, *_SHARED, *_OWN)}.values())
"""Every format of every document; a document's own way to write one comes before the shared one."""


def formats_of(document: Document) -> dict[str, Format]:
    """Return the formats of a document by name."""
    return {one.name: one for one in FORMATS if one.document == document}


def format_for(document: Document, path: Path) -> Format:
    """Return the format of a document whose longest suffix ends the file's name.

    Raises:
        UsageError: no format has such a suffix.
    """
    known = {suffix: one for one in formats_of(document).values() for suffix in one.suffixes}
    fitting = [suffix for suffix in known if path.name.lower().endswith(suffix)]
    if not fitting:
        raise UsageError(
            f"no format is written to files named like {path.name!r}", hint="use one of " + " ".join(sorted(known))
        )
    return known[max(fitting, key=len)]


def render(document: Document, value: object, name: str, *, width: int | None = None, url: str = "") -> str | bytes:
    """Return a document in the named format.

    Text is for a terminal of `width` columns, null where there is none; `url` is where the full report lies, for
    formats that link to it.
    """
    entry = formats_of(document)[name]
    taken = _function(entry.of)(value) if entry.of else value
    known: dict[str, dict[str, Any]] = {"width": {"width": width}, "url": {"report_url": url}}
    content: str | bytes = _function(entry.writer)(taken, **known.get(entry.takes, {}))
    return content


def load(document: Document, *names: str) -> None:
    """Import what writes a document in these formats, before there is one to write."""
    for one in (formats_of(document)[name] for name in names):
        for place in filter(None, (one.of, one.writer)):
            _function(place)


def write(document: Document, value: object, path: Path, *, url: str = "") -> None:
    """Write a document in the format that the file's suffix names, packed if it ends in .gz, whole or not at all.

    Raises:
        UsageError: the suffix is unknown, or the folder is missing.
    """
    content = encoded(render(document, value, format_for(document, path).name, url=url))
    write_whole(path, gzip.compress(content, mtime=0) if path.suffix.lower() == ".gz" else content)


def encoded(content: str | bytes) -> bytes:
    """Return what was rendered as bytes."""
    return content.encode() if isinstance(content, str) else content


def _function(place: str) -> Callable[..., Any]:
    module, name = place.split(":")
    found: Callable[..., Any] = getattr(import_module(f"bubblefinder.{module}"), name)
    return found


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all.

    Raises:
        UsageError: the folder is missing, or the file can't be written.
    """
    try:
        with temporary_folder(path.parent, f".{path.name[:40]}.") as place:
            whole = place / "whole"
            whole.write_bytes(content)
            whole.replace(path)
    except OSError as error:
        way_out = "check the folder and the space left on it"
        way_out = "give the name of a file, not of a folder" if path.is_dir() else way_out
        raise UsageError(f"{path} can't be written: {error.strerror}", hint=way_out) from error
