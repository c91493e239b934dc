"""Reading rule packs: the shipped ones and a team's own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.errors import UsageError
from bubblefinder.rules.model import Kernels, Pack
from bubblefinder.rules.shipped import OTHER, shipped
from bubblefinder.rules.suggest import FileError, load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pydantic import BaseModel

    from bubblefinder.rules.model import Rule

KERNELS: Final = "kernels.toml"
SCHEMAS: Final[dict[str, type[BaseModel]]] = {"rules-1.json": Pack, "kernels-1.json": Kernels}


@dataclass(frozen=True, slots=True)
class Packs:
    """The rules of all packs in reading order, and the kernel categories, a team's own first."""

    packs: tuple[Pack, ...]
    kernels: tuple[tuple[str, re.Pattern[str]], ...]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule, pack by pack."""
        return tuple(rule for pack in self.packs for rule in pack.rule)

    def category(self, kernel: str) -> str:
        """Return the category of a kernel's name; ``other`` where no pattern fits."""
        return _category(self.kernels, kernel)


@lru_cache(maxsize=1 << 14)
def _category(kernels: tuple[tuple[str, re.Pattern[str]], ...], kernel: str) -> str:
    return next((name for name, pattern in kernels if pattern.search(kernel)), OTHER)


def load_packs(folders: Iterable[Path] = ()) -> Packs:
    """Return the shipped packs and those in `folders`.

    Raises:
        FileError: with every mistake in every file, or an id or name that two rules share.
        UsageError: a folder isn't there or holds no pack.
    """
    own = [path for folder in folders for path in _files(folder)]
    return _assemble((*own, *_files(shipped())))


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMAS[name].model_json_schema()}


def own_rules(folders: Sequence[Path]) -> list[str]:
    """Return the ids of the rules in `folders`, of the shipped ones if there are none."""
    paths = [path for folder in folders or (shipped(),) for path in _files(folder)]
    return [rule.id for path in paths if isinstance(pack := read_pack(path), Pack) for rule in pack.rule]


def read_pack(path: Path) -> Pack | Kernels:
    """Return one file: a pack, or kernel categories if it is called kernels.toml.

    Raises:
        FileError: with every mistake in it.
    """
    return load(Kernels, path) if path.name == KERNELS else load(Pack, path)


@cache
def _assemble(paths: tuple[Path, ...]) -> Packs:
    mistakes: list[str] = []
    read: dict[Path, Pack | Kernels] = {}
    for path in paths:
        try:
            read[path] = read_pack(path)
        except FileError as error:
            mistakes.append(str(error))
    packs = {path: pack for path, pack in read.items() if isinstance(pack, Pack)}
    mistakes += _shared(packs)
    if mistakes:
        raise FileError("\n".join(mistakes), hint="fix these keys and run it again")
    kernels = [category for file in read.values() if isinstance(file, Kernels) for category in file.category]
    patterns = tuple((category.name, re.compile(category.pattern, re.IGNORECASE)) for category in kernels)
    return Packs(tuple(sorted(packs.values(), key=lambda pack: pack.pack != "core")), patterns)


def _files(folder: Path) -> Sequence[Path]:
    """Return the packs of a folder by name."""
    found = sorted(folder.glob("*.toml")) if folder.is_dir() else []
    if not found:
        raise UsageError(f"{folder}: no rule packs here", hint="name a folder with *.toml rule packs")
    return found


def _shared(packs: Mapping[Path, Pack]) -> list[str]:
    """Return a line for every id or name that a second rule uses."""
    seen: dict[str, Path] = {}
    lines = []
    for path, pack in packs.items():
        for rule in pack.rule:
            for word in (rule.id, rule.name):
                if word in seen:
                    lines.append(f"{path}: rule {rule.id}: {word} is already used in {seen[word]}")
                seen.setdefault(word, path)
    return lines
