"""What a comparison is as JSON: bubblefinder.diff/1."""

from __future__ import annotations

from typing import Any

from bubblefinder.compare.model import SCHEMA

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of diff/1."""
    import msgspec

    from bubblefinder.compare.model import Diff

    schema = msgspec.json.schema(Diff)
    return {"$schema": _DIALECT, "$id": SCHEMA, "title": SCHEMA, **schema}
