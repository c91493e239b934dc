"""Errors in files that people write: all of them at once, each with file, key and a suggestion."""

from __future__ import annotations

import difflib
import tomllib
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from bubblefinder.errors import UsageError
from bubblefinder.reading import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pydantic_core import ErrorDetails

Model = TypeVar("Model", bound=BaseModel)


class FileError(UsageError):
    """A rule pack, a case file or a configuration file is wrong."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'copy_kind'?``, or nothing when no known word is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def read_toml(path: Path) -> dict[str, Any]:
    """Return a TOML file's tables; ``-`` is standard input.

    Raises:
        FileError: it can't be read, or it is no TOML.
    """
    try:
        return tomllib.loads(read_bytes(path).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not TOML: it is no text in UTF-8", hint="check the path") from error
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{path}: not TOML: {error}", hint="mend that line and run it again") from error
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}", hint="check the path") from error


def validate(model: type[Model], data: object, where: str) -> Model:
    """Return the data as a model.

    Raises:
        FileError: with every error, one a line: file, key, what is wrong with it.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = [
            f"{where}: {_key(data, detail['loc'])}{_told(model, detail)}" for detail in error.errors(include_url=False)
        ]
        raise FileError("\n".join(dict.fromkeys(lines)), hint="fix these keys and run it again") from error


def _key(data: object, loc: tuple[int | str, ...]) -> str:
    """Return where an error is: ``rule SGL001, wait[0].bytes: ``."""
    named = ""
    if len(loc) > 1 and isinstance(loc[1], int) and isinstance(data, dict):
        entry = data[loc[0]][loc[1]]
        label = entry.get("id") or entry.get("name") if isinstance(entry, dict) else None
        named, loc = f"{loc[0]} {label or loc[1] + 1}", loc[2:]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")
    key = ", ".join(part for part in (named, path) if part)
    return f"{key}: " if key else ""


def _told(model: type[BaseModel], detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        known = _known_keys(model.model_json_schema(), detail["loc"][:-1])
        return f"unknown key{did_you_mean(str(detail['loc'][-1]), known)}"
    if detail["type"] == "missing":
        return "is missing"
    if detail["type"] == "tuple_type":
        return "should be a list"
    told = str(detail["msg"]).removeprefix("Value error, ")
    return told[:1].lower() + told[1:]


def _known_keys(schema: dict[str, Any], loc: tuple[int | str, ...]) -> list[str]:
    """Return the keys that the JSON Schema allows at a place."""
    nodes = [schema]
    for part in loc:
        nodes = [step for node in _resolved(schema, nodes) if (step := _down(node, part)) is not None]
    return [key for node in _resolved(schema, nodes) for key in node.get("properties", {})]


def _down(node: dict[str, Any], part: int | str) -> dict[str, Any] | None:
    return node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part)


def _resolved(schema: dict[str, Any], nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the nodes with references followed and alternatives spread."""
    found: list[dict[str, Any]] = []
    for node in nodes:
        if "$ref" in node:
            found += _resolved(schema, [schema["$defs"][node["$ref"].rsplit("/", 1)[1]]])
        elif "anyOf" in node:
            found += _resolved(schema, node["anyOf"])
        else:
            found.append(node)
    return found
