"""Opens whatever a user has: finds out by content what a path is, and loads it or says what it is instead."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import InputError, NotATraceError
from bubblefinder.reading import STDIN
from bubblefinder.trace.arrow import FolderSource
from bubblefinder.trace.build import build_trace
from bubblefinder.trace.identify import check_tables, foreign_file
from bubblefinder.trace.model import QualityNote
from bubblefinder.trace.nsysrep import RECORDING, REPORTS, exported
from bubblefinder.trace.shapes import read_shapes
from bubblefinder.trace.sqlite import MAGIC, open_sqlite
from bubblefinder.trace.unpack import UNPACK_LIMIT, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

    import polars as pl

    from bubblefinder.trace.model import Trace
    from bubblefinder.trace.schema import Source

_LAYERS: Final = 2


def _silent(_: str) -> None:
    """Tell nobody."""


def open_trace(
    path: str | PathLike[str], *, unpack_limit: int = UNPACK_LIMIT, progress: Callable[[str], None] = _silent
) -> Trace:
    """Load an Nsight Systems capture.

    Args:
        path: a SQLite export, a folder of Parquet or Arrow files, one of these packed with xz, zstd
            or gzip (a folder as a tar), or, where Nsight Systems is installed, an .nsys-rep, .qdrep or .qdstrm.
        unpack_limit: bytes that a packed file may grow to.
        progress: called with how far Nsight Systems is, where it has to export the file first.

    Returns:
        The capture, whole and in memory; nothing is written beside `path` and nothing stays open.

    Raises:
        NotATraceError: the path holds no export, or a damaged one.
        CannotAnswerError: the export holds GPU work, but none on a device that it names.
        InputError: the path can't be read.
    """
    with open_source(path, unpack_limit=unpack_limit, progress=progress) as source:
        trace = build_trace(source, _name(Path(path)))
    stale = _stale_note(Path(path))
    notes = (*trace.notes, stale) if stale else trace.notes
    return replace(trace, notes=notes, launch_shapes=partial(_launch_shapes, Path(path), unpack_limit))


@contextmanager
def open_source(
    path: str | PathLike[str], *, unpack_limit: int = UNPACK_LIMIT, progress: Callable[[str], None] = _silent
) -> Iterator[Source]:
    """Open an Nsight Systems capture to read its tables; takes and raises what `open_trace` does."""
    given = Path(path)
    try:
        with _opened(given, unpack_limit, _LAYERS, progress) as source:
            check_tables(source, _name(given))
            yield source
    except OSError as error:
        raise InputError(
            f"{_name(given)} can't be read: {error.strerror or error}", hint="check the path and its permissions"
        ) from error


def _name(path: Path) -> str:
    return path.name or path.resolve().name


def _launch_shapes(path: Path, unpack_limit: int) -> pl.DataFrame:
    """Open a capture again and return how its kernels were launched."""
    with _opened(path, unpack_limit, _LAYERS, _silent) as source:
        return read_shapes(source)


@contextmanager
def _opened(path: Path, unpack_limit: int, layers: int, progress: Callable[[str], None]) -> Iterator[Source]:
    """Open a path as what its content says it is; a packed file may hold another, `layers` deep."""
    if not path.exists():
        if path == STDIN:
            raise InputError(
                "a capture can't be read from standard input",
                hint="name its file; report, diff and budget check take a report's JSON or HTML as -",
            )
        raise InputError(f"{path} does not exist", hint="check the path")
    if path.is_dir():
        yield FolderSource(path)
        return
    if not path.is_file():
        raise InputError(f"{path} is neither a file nor a folder", hint="give an export that Nsight Systems wrote")
    with unpacked(path, unpack_limit) as content:
        if content is None:
            with _opened_file(path, progress) as source:
                yield source
            return
        if not layers:
            raise NotATraceError(f"{path.name} is packed too many times over", hint="unpack it and give what is inside")
        with _opened(content, unpack_limit, layers - 1, progress) as source:
            yield source


@contextmanager
def _opened_file(path: Path, progress: Callable[[str], None]) -> Iterator[Source]:
    """Open a file that isn't packed."""
    with path.open("rb") as file:
        head = file.read(4096)
    if head.startswith(MAGIC):
        with open_sqlite(path) as source:
            yield source
        return
    refusal = foreign_file(path, head)
    if refusal or path.suffix not in (*REPORTS, RECORDING):
        raise refusal or NotATraceError(
            f"{path.name} is not an Nsight Systems export",
            hint="export one with: nsys export --type sqlite REPORT.nsys-rep",
        )
    with exported(path, progress) as database, open_sqlite(database) as source:
        yield source


def _stale_note(path: Path) -> QualityNote | None:
    """Say that an export and the report beside it may be of different captures: the export is the older one."""
    name = path.name.split(".sqlite", 1)[0]
    reports = (path.with_name(name + suffix) for suffix in REPORTS)
    report = next((report for report in reports if report.is_file() and report != path), None)
    if path.is_file() and report and report.stat().st_mtime > path.stat().st_mtime:
        message = f"{report.name} beside this export is newer; the export may be of an earlier capture"
        return QualityNote("export-older-than-report", "warn", message)
    export = path.with_suffix(".sqlite")
    if path.suffix in REPORTS and export.is_file() and export.stat().st_mtime < path.stat().st_mtime:
        message = f"{export.name} beside this report is older and was not used; it may be of an earlier capture"
        return QualityNote("export-older-than-report", "info", message)
    return None
