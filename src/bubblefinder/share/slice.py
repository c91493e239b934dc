"""Writes a part of a capture as an export of its own."""

from __future__ import annotations

import lzma
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.ending import temporary_folder
from bubblefinder.errors import InternalError, UsageError
from bubblefinder.share.personal import personal_words
from bubblefinder.share.rows import Kept, kept_rows
from bubblefinder.share.scrub import Scrubber
from bubblefinder.share.tables import Shared, shared_columns
from bubblefinder.trace.build import build_trace
from bubblefinder.trace.open import open_source, open_trace
from bubblefinder.trace.part import PART, PART_RANKS, PART_ROLES, PART_STEPS, Part
from bubblefinder.trace.schema import STRING_IDS, Source, StoredColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from bubblefinder.trace.model import Trace

SUFFIXES: Final = (".sqlite", ".sqlite.xz")
_ALL_OR_NOTHING: Final = ("fact", "version", "diagnostic")
_FRAMES: Final = ("operations", "calls", "nvtx", "overheads", "syncs", "events", "os_calls", "off_cpu", "frames")
_CHUNK: Final = 1 << 20


def write_slice(
    path: Path,
    out: Path,
    cut: Callable[[Trace], Trace],
    *,
    scrub: bool = False,
    force: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Trace:
    """Write a part of a capture to a SQLite export of its own, packed if its name ends in .xz.

    The file appears whole or not at all, and only if loading it gives what was cut.

    Args:
        path: the capture, in any format that `open_trace` takes.
        out: a path that ends in .sqlite or .sqlite.xz.
        cut: what to keep, see `share.cut`; what it returns unchanged is kept whole.
        scrub: keep only what `share.tables` lists, texts cleaned as `share.scrub` says.
        force: replace a file that is there.
        progress: called with the name of each stage as it begins.

    Returns:
        The part.

    Raises:
        UsageError: `out` has another suffix, exists, or can't be written.
        InputError: the capture can't be read or lacks the part.
    """
    check_target(out, force=force)
    with open_source(path, progress=progress) as source:
        part = cut(build_trace(source, path.name))
        progress("write")
        try:
            with temporary_folder(out.parent, ".bubblefinder-") as place:
                written = place / "slice.sqlite"
                _write(written, source, part, scrub=scrub)
                _check(written, part)
                _packed(written, out.suffix).replace(out)
        except OSError as error:
            raise UsageError(
                f"{out} can't be written: {error.strerror}", hint="check the folder and the space left on it"
            ) from error
    return part


def check_target(out: Path, *, force: bool) -> None:
    """Refuse a file that can't be written, before anything is read.

    Raises:
        UsageError: another suffix, no such folder, or a file that is there already.
    """
    if not out.name.endswith(SUFFIXES):
        raise UsageError(f"{out.name} is no name for a slice", hint="end it in .sqlite or .sqlite.xz")
    if not out.parent.is_dir():
        raise UsageError(f"there is no folder {str(out.parent)!r} to write {out.name!r} to")
    if out.exists() and not force:
        raise UsageError(f"{out} exists", hint="give another name, or --force to replace it")


def _write(target: Path, source: Source, part: Trace, *, scrub: bool) -> None:
    scrubber = Scrubber(personal_words(source)) if scrub else None
    texts: dict[int, str] = {}
    with closing(sqlite3.connect(target)) as database, database:
        database.execute(f"CREATE TABLE {STRING_IDS} (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        for kept in kept_rows(source, part):
            texts |= _copy(database, source, kept, scrubber)
        if part.part:
            _write_part(database, part.part, scrubber, source)
        known = source.strings(texts).texts.items()
        rows = ((number, scrubber.clean(texts[number], text) if scrubber else text) for number, text in known)
        database.executemany(f"INSERT INTO {STRING_IDS} VALUES (?, ?)", rows)


def _copy(database: sqlite3.Connection, source: Source, kept: Kept, scrubber: Scrubber | None) -> dict[int, str]:
    """Copy rows of a table and return the kind of each string id that occurs in them."""
    shared = shared_columns(kept.name)
    layout = [column for column in source.layout(kept.stored) if scrubber is None or column.name in shared]
    if not layout:
        return {}
    kinds = [shared.get(column.name, Shared(column.name)) for column in layout]
    rows = source.records(kept.stored, [column.name for column in layout], kept.places)
    if scrubber and any(kind.kind and (not kind.by_id or kind.kind == "thread") for kind in kinds):
        rows = _scrubbed(rows, kinds, scrubber, source)
    texts: dict[int, str] = {}
    _insert(database, kept.name, layout, _noted(rows, kinds, texts))
    return texts


def _scrubbed(
    rows: Iterable[tuple[object, ...]], kinds: Sequence[Shared], scrubber: Scrubber, source: Source
) -> Iterator[tuple[object, ...]]:
    """Yield the rows with their texts cleaned, without those of which a name, a fact or a text is all gone."""
    for row in rows:
        cleaned = tuple(
            scrubber.clean(kind.kind, value) if kind.kind and not kind.by_id else value
            for value, kind in zip(row, kinds, strict=True)
        )
        if all(_stays(value, kind, scrubber, source) for value, kind in zip(cleaned, kinds, strict=True)):
            yield cleaned


def _stays(value: object, kind: Shared, scrubber: Scrubber, source: Source) -> bool:
    if kind.kind == "thread":
        return isinstance(value, int) and bool(scrubber.clean("thread", source.strings([value]).texts.get(value)))
    return kind.kind not in _ALL_OR_NOTHING or bool(value)


def _noted(
    rows: Iterable[tuple[object, ...]], kinds: Sequence[Shared], texts: dict[int, str]
) -> Iterator[tuple[object, ...]]:
    """Yield the rows, and note the kind of each string id; that of code wins, which keeps most."""
    by_id = [(place, kind.kind, set[object]()) for place, kind in enumerate(kinds) if kind.by_id and kind.kind]
    for row in rows:
        for place, kind, seen in by_id:
            number = row[place]
            if number not in seen:
                seen.add(number)
                if isinstance(number, int) and texts.get(number) != "code":
                    texts[number] = kind
        yield row


def _write_part(database: sqlite3.Connection, part: Part, scrubber: Scrubber | None, source: Source) -> None:
    """Write what the whole capture showed of the part."""
    whole = pl.DataFrame({"mode": [part.mode], "origin_ns": [part.origin_ns], "left_out_ns": [part.left_out_ns]})
    for table, frame in ((PART, whole), (PART_RANKS, part.ranks), (PART_STEPS, part.steps), (PART_ROLES, part.roles)):
        kinds = shared_columns(table.name)
        layout = [StoredColumn(column.source, "TEXT" if column.is_text else "INTEGER") for column in table.columns]
        rows: Iterable[tuple[object, ...]] = frame.select(column.name for column in table.columns).iter_rows()
        if scrubber:
            rows = _scrubbed(rows, [kinds[column.name] for column in layout], scrubber, source)
        _insert(database, table.name, layout, rows)


def _insert(
    database: sqlite3.Connection, name: str, layout: Sequence[StoredColumn], rows: Iterable[tuple[object, ...]]
) -> None:
    described = ", ".join(f"{_quoted(column.name)} {column.sql_type}" for column in layout)
    database.execute(f"CREATE TABLE {_quoted(name)} ({described})")
    database.executemany(f"INSERT INTO {_quoted(name)} VALUES ({', '.join('?' * len(layout))})", rows)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _check(written: Path, part: Trace) -> None:
    """Load what was written and compare.

    Raises:
        InternalError: something of the part is missing or another.
    """
    again = open_trace(written)
    for frame in _FRAMES:
        mine, theirs = (_numbers(getattr(trace, frame)) for trace in (part, again))
        if not mine.equals(theirs):
            raise InternalError(
                f"the slice differs from the capture in its {frame.replace('_', ' ')}",
                hint="please report this with the output of `bubblefinder doctor`",
            )


def _numbers(frame: pl.DataFrame) -> pl.DataFrame:
    numbers = frame.drop("row", strict=False).select(pl.exclude(pl.String))
    return numbers.sort(pl.all())


def _packed(written: Path, suffix: str) -> Path:
    """Return the file to move into place, packed if its name is to end in .xz."""
    if suffix != ".xz":
        return written
    packed = written.with_suffix(".xz")
    with written.open("rb") as plain, lzma.open(packed, "wb") as target:
        shutil.copyfileobj(plain, target, _CHUNK)
    return packed
