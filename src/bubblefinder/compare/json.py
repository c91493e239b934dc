"""A comparison as JSON: bubblefinder.diff/1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bubblefinder.compare.model import SCHEMA

if TYPE_CHECKING:
    from bubblefinder.compare.model import Diff

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def render(diff: Diff) -> str:
    """Return the comparison with sorted keys; times are nanoseconds, unknown is null."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(diff, order="sorted"), indent=1).decode() + "\n"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of diff/1."""
    import msgspec

    from bubblefinder.compare.model import Diff

    schema = msgspec.json.schema(Diff)
    return {"$schema": _DIALECT, "$id": SCHEMA, "title": SCHEMA, **schema}
