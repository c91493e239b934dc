"""Documents as JSON, written with sorted keys; a report is read back into the same values from all that holds it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bubblefinder.errors import NotATraceError
from bubblefinder.reading import read_bytes
from bubblefinder.report.model import SCHEMA, Report

if TYPE_CHECKING:
    from pathlib import Path

ELEMENT_ID: Final = "bubblefinder-report"
_OTHERS: Final = {"bubblefinder-diff": "comparison (bubblefinder diff)"}
"""Elements of other pages that bubblefinder writes, and what those pages are of."""
_HINT = "give a report written by `bubblefinder analyze -o report.json` or `-o report.html`"


def render(document: object) -> str:
    """Return a report, or any other document, as indented JSON; integers are nanoseconds, unknown is null."""
    return msgspec.json.format(encode(document), indent=1).decode() + "\n"


def encode(document: object) -> bytes:
    """Return the same as compact JSON; keys are sorted in both."""
    return msgspec.json.encode(document, order="sorted")


def decode(content: bytes | str) -> Report:
    """Return the report that `content` holds; keys it doesn't know are ignored.

    Raises:
        NotATraceError: it is no JSON, another schema, or a damaged report.
    """
    schema = _schema_of(content)
    if schema != SCHEMA:
        said = f"its schema is {schema!r:.80}" if schema else "it names no schema"
        raise NotATraceError(f"this is not a {SCHEMA} document: {said}", hint=_HINT)
    try:
        return msgspec.json.decode(content, type=Report)
    except msgspec.MsgspecError as error:
        raise NotATraceError(
            f"the report is damaged: {error}", hint="write it again with `bubblefinder analyze`"
        ) from error


def _schema_of(content: bytes | str) -> object:
    try:
        return msgspec.json.decode(content, type=dict[str, Any]).get("schema")
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotATraceError("this is not a report: it holds no JSON object", hint=_HINT) from error


def read_report(path: Path) -> Report:
    """Return the report in a JSON file, or the one embedded in an HTML report; ``-`` is standard input.

    Raises:
        NotATraceError: the file can't be read or holds no report.
    """
    try:
        content = read_bytes(path)
    except OSError as error:
        raise NotATraceError(f"{path.name} can't be read: {error.strerror}", hint="check the path") from error
    try:
        return decode(embedded_json(content.decode(errors="replace")) if content.lstrip()[:1] == b"<" else content)
    except NotATraceError as error:
        raise NotATraceError(f"{path.name}: {error}", hint=error.hint) from error


def embedded_json(page: str) -> str:
    """Return the JSON of the report inside an HTML report."""
    finder = _Finder()
    finder.feed(page)
    if finder.other:
        raise NotATraceError(
            f"this is the page of a {finder.other}, not of a report",
            hint="give a page written by `bubblefinder analyze -o report.html`; this one opens in a browser",
        )
    if not finder.found:
        raise NotATraceError(
            "this HTML page holds no bubblefinder report",
            hint="give a page written by `bubblefinder analyze -o report.html`",
        )
    return "".join(finder.found)


class _Finder(HTMLParser):
    """Collects the text of the script element that holds the report."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = False
        self.found: list[str] = []
        self.other = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = dict(attrs).get("id") or ""
        self.inside = tag == "script" and name == ELEMENT_ID
        if tag == "script" and name in _OTHERS:
            self.other = _OTHERS[name]

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "script"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found.append(data)
