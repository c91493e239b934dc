"""Documents as JSON, written with sorted keys; a report is read back into the same values."""

from __future__ import annotations

from typing import Any

import msgspec

from bubblefinder.errors import NotATraceError
from bubblefinder.report.model import SCHEMA, Report

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
