"""Which captures a folder or a pattern holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REPORTS: Final = (".nsys-rep", ".qdrep")
_EXPORTS: Final = (".sqlite", ".sqlite.xz", ".sqlite.gz", ".sqlite.zst")
_FOLDERS: Final = ("_pqtdir", "_arwdir")
_OF_ALL_FOLDERS: Final = ("StringIds.parquet", "StringIds.arrow")
"""A table that every export has: a folder with it is one, whatever it is called."""


def several(places: Sequence[Path]) -> list[Path]:
    """Return the captures that several places name, or a folder or a pattern; none where the one place itself is read.

    Raises:
        InputError: one of several places holds none.
    """
    first = places[0]
    is_one = first.exists() and (not first.is_dir() or _is_capture(first))
    if len(places) == 1 and (is_one or not any(_in_place(str(first)))):
        return []
    return find_captures([str(place) for place in places])


def find_captures(places: Iterable[str]) -> list[Path]:
    """Return the captures in files, folders (all levels) and patterns, each once, by path.

    A report of Nsight Systems is left out where its export lies beside it.

    Raises:
        InputError: a place holds none.
    """
    found: dict[Path, None] = {}
    for place in places:
        mine = sorted(_in_place(place))
        if not mine:
            raise InputError(
                f"{place} holds no capture", hint="name folders, files or patterns such as 'runs/*.sqlite'"
            )
        found |= dict.fromkeys(mine)
    return [path for path in sorted(found) if not (path.suffix in REPORTS and export_beside(path))]


def export_beside(report: Path) -> Path | None:
    """Return the export of a report that lies beside it and is not older; null if there is none."""
    names = [f"{report.stem}{ending}" for ending in (*_EXPORTS, *_FOLDERS)]
    beside = [path for name in names if (path := report.with_name(name)).exists()]
    fresh = [path for path in beside if path.stat().st_mtime >= report.stat().st_mtime]
    return fresh[0] if fresh else None


def _in_place(place: str) -> Iterable[Path]:
    path = Path(place)
    if path.is_dir() and not _is_capture(path):
        return [inner for inner in path.rglob("*") if _is_capture(inner)]
    if path.exists():
        return [path]
    root = Path(path.anchor)
    return [inner for inner in root.glob(str(path.relative_to(root))) if _is_capture(inner)]


def _is_capture(path: Path) -> bool:
    if path.is_dir():
        return path.name.endswith(_FOLDERS) or any((path / name).exists() for name in _OF_ALL_FOLDERS)
    return path.name.endswith((*_EXPORTS, *REPORTS))
