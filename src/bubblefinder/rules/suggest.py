"""Errors in files that people write: all of them at once, each with file, line, key and a suggestion."""

from __future__ import annotations

import difflib
import json
import tomllib
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from bubblefinder.errors import UsageError
from bubblefinder.reading import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pydantic_core import ErrorDetails

Model = TypeVar("Model", bound=BaseModel)
Place = tuple[int | str, ...]
"""Keys and positions that lead to a value, from the outside in."""
_HINT: Final = "fix these keys and run it again"


class Strict(BaseModel):
    """A table of such a file: keys that it doesn't know are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FileError(UsageError):
    """A rule pack, a budget, a case file or a configuration file is wrong."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'copy_kind'?``, or nothing when no known word is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def load(model: type[Model], path: Path, hint: str = _HINT) -> Model:
    """Return what a TOML file holds as a model; ``-`` is standard input.

    Raises:
        FileError: it can't be read, or is wrong: with every mistake.
    """
    text = _text(path)
    return validate(model, _tables(text, path), str(path), text.splitlines(), hint)


def load_json(model: type[Model], path: Path, hint: str) -> Model:
    """Return what a JSON file holds as a model; `hint` says what such a file is.

    Raises:
        FileError: it can't be read, or is wrong: with every mistake.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path} can't be read: {error.strerror or error}", hint="check the path") from error
    except ValueError as error:
        raise FileError(f"{path}: not JSON: {error}", hint=hint) from error
    return validate(model, data, str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """Return a TOML file's tables; ``-`` is standard input.

    Raises:
        FileError: it can't be read, or it is no TOML.
    """
    return _tables(_text(path), path)


def validate(model: type[Model], data: object, where: str, lines: Sequence[str] = (), hint: str = _HINT) -> Model:
    """Return the data as a model; `lines` are those of the file, where it is TOML.

    Raises:
        FileError: with every mistake, one a line: file, line, key, what is wrong with it.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        told: dict[str, list[str]] = {}
        for detail in error.errors(include_url=False):
            place = _written(data, detail["loc"])
            told.setdefault(_line(place, lines) + _key(data, place), []).append(_told(model, detail))
        mistakes = [f"{where}: {place}{' or '.join(dict.fromkeys(said))}" for place, said in told.items()]
        raise FileError("\n".join(mistakes), hint=hint) from error


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not TOML: it is no text in UTF-8", hint="check the path") from error
    except OSError as error:
        raise FileError(f"{path} can't be read: {error.strerror or error}", hint="check the path") from error


def _tables(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{path}: not TOML: {error}", hint="mend that line and run it again") from error


def _written(data: Any, place: Place) -> Place:  # noqa: ANN401 - whatever a file holds
    """Return a place as the file has it: pydantic puts the kinds it tried behind the place of a plain value."""
    for depth, part in enumerate(place):
        if not isinstance(data, dict | list):
            return place[:depth]
        data = data.get(part) if isinstance(data, dict) else data[part] if isinstance(part, int) else None
    return place


def _key(data: object, place: Place) -> str:
    """Return which key an error is about: ``rule SGL001, wait[0].bytes: ``."""
    named = ""
    if len(place) > 1 and isinstance(place[1], int) and isinstance(data, dict):
        entry = data[place[0]][place[1]]
        label = entry.get("id") or entry.get("name") if isinstance(entry, dict) else None
        named, place = f"{place[0]} {label or place[1] + 1}", place[2:]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    key = ", ".join(part for part in (named, path) if part)
    return f"{key}: " if key else ""


def _line(place: Place, lines: Sequence[str]) -> str:
    """Return the line of a key, as well as a scan can tell, or else that of its table: ``line 7, ``; else nothing."""
    first = _table(place, lines)
    if first is None:
        return ""
    own = (number for number in range(first, len(lines)) if place and lines[number].split("=")[0].strip() == place[-1])
    number = next(own, first if len(place) > 1 else None)
    return "" if number is None else f"line {number + 1}, "


def _table(place: Place, lines: Sequence[str]) -> int | None:
    """Return where the innermost table of a place begins; null where it isn't written as one."""
    first, name = 0, ""
    for part, number in pairwise(place):
        if isinstance(part, str) and isinstance(number, int):
            name = f"{name}.{part}" if name else part
            heads = [n for n in range(first, len(lines)) if lines[n].replace(" ", "").startswith(f"[[{name}]]")]
            if number >= len(heads):
                return None
            first = heads[number]
    return first


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


def _known_keys(schema: dict[str, Any], place: Place) -> list[str]:
    """Return the keys that the JSON Schema allows at a place."""
    nodes = [schema]
    for part in place:
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
