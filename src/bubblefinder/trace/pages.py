"""Reads integer columns straight from the pages of a SQLite table, many rows at a time.

The layout is that of https://www.sqlite.org/fileformat2.html: a table is a tree whose leaves hold rows
("cells") in the order of their rowids. Only what Nsight Systems writes is read: rows that fit their page,
numbered without a hole, whose wanted columns are integers or null. Whatever else a file holds, sound or
damaged, is refused, and SQLite itself has to read it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bubblefinder.parallel import each

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bubblefinder.trace.schema import Column

Bytes: TypeAlias = NDArray[np.uint8]
Positions: TypeAlias = NDArray[np.int64]
Integers: TypeAlias = NDArray[np.signedinteger[Any]]

_LEAF: Final = 13
_INTERIOR: Final = 5
_RIGHTMOST: Final = 8
_PREFIX: Final = {_LEAF: 8, _INTERIOR: 12}
_DEEPEST: Final = 20
_BATCH: Final = 1 << 21
_PADDING: Final = 128
_MORE: Final = 0x80
_ROWID_BYTES: Final = 4
_REAL: Final = 7
_ZERO: Final = 8
_ONE: Final = 9
_WITHOUT_BYTES: Final = (0, _ZERO, _ONE)
_TEXT: Final = 12
_SPARE: Final = 35
_WIDTHS: Final = np.array(
    [0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0, *((kind - _TEXT) // 2 for kind in range(_TEXT, 1 << 14))], np.uint32
)
_SHORT_WIDTHS: Final = _WIDTHS[:_MORE].astype(np.uint8)
"""Bytes of a value by its kind: of any whose kind takes no more than two bytes, and than one."""
_SHIFTS: Final = np.array([63, *(64 - 8 * width for width in (1, 2, 3, 4, 6, 8)), *[63] * (_MORE - 7)], np.int64)
_DTYPES: Final[dict[type[pl.DataType], type[np.signedinteger[Any]]]] = {
    pl.Int64: np.int64, pl.Int32: np.int32, pl.Int8: np.int8,
}  # fmt: skip


class PagesRefusedError(Exception):
    """The table holds something that only SQLite itself can be trusted to read."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table lies.

    Attributes:
        path: of the file.
        root: number of the table's first page.
        first: its lowest rowid.
        last: its highest rowid.
    """

    path: Path
    root: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _File:
    """An open database file. `usable` bytes of each of its `pages` pages belong to SQLite."""

    descriptor: int
    page_size: int
    usable: int
    pages: int

    def read(self, pages: Positions) -> Bytes:
        """Return the bytes of some pages, one row a page, and room to read a value past the last one."""
        size = self.page_size
        buffer = np.empty(len(pages) * size + _PADDING, np.uint8)
        breaks = np.flatnonzero(np.diff(pages) != 1) + 1
        for run in np.split(np.arange(len(pages)), breaks):
            into = buffer[run[0] * size : (run[-1] + 1) * size]
            if os.preadv(self.descriptor, [into.data], int(pages[run[0]] - 1) * size) != len(into):
                raise PagesRefusedError
        return buffer


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A column to read: its position in a row, where its values go, and which of them are null."""

    index: int
    values: Integers
    null: NDArray[np.bool_]


def read_pages(place: Place, columns: Sequence[tuple[int, Column]], most_rows: int) -> pl.DataFrame:
    """Read integer columns in stored order; an integer that doesn't fit its column becomes null.

    Args:
        place: where the table lies.
        columns: what to read, each with its position in a stored row.
        most_rows: more than these can't be in the file.

    Raises:
        PagesRefusedError: read the table some other way.
    """
    rows = place.last - place.first + 1
    if not 0 < rows <= most_rows or not 0 < place.last < 1 << 7 * _ROWID_BYTES or place.first < 0:
        raise PagesRefusedError
    wanted = [
        _Wanted(index, np.empty(rows, _DTYPES[column.dtype]), np.zeros(rows, np.bool_)) for index, column in columns
    ]
    with _opened(place.path) as file:
        leaves = _leaves(file, place.root)
        at_once = max(1, _BATCH // file.page_size)
        batches = [leaves[begin : begin + at_once] for begin in range(0, len(leaves), at_once)]
        read = each(lambda batch: _read_leaves(file, batch, place.first, wanted), batches)
    ends = [position + count for position, count in read]
    if ends[-1] != rows or [0, *ends[:-1]] != [position for position, _ in read]:
        raise PagesRefusedError
    return pl.DataFrame([_series(column.name, found) for (_, column), found in zip(columns, wanted, strict=True)])


def _series(name: str, found: _Wanted) -> pl.Series:
    values = pl.Series(name, found.values)
    if not found.null.any():
        return values
    return pl.select(pl.when(~pl.Series(found.null)).then(values).alias(name)).to_series()


@contextmanager
def _opened(path: Path) -> Iterator[_File]:
    """Open the file and read its header."""
    with path.open("rb", buffering=0) as stream:
        header = stream.read(100)
        page_size = int.from_bytes(header[16:18])
        page_size = 65_536 if page_size == 1 else page_size
        yield _File(stream.fileno(), page_size, page_size - header[20], os.fstat(stream.fileno()).st_size // page_size)


def _leaves(file: _File, root: int) -> Positions:
    """Return the numbers of the leaf pages of a table, in the order of their rows."""
    level = np.array([root])
    for _ in range(_DEEPEST):
        if (level <= 1).any() or (level > file.pages).any() or len(np.unique(level)) < len(level):
            break
        if file.read(level[:1])[0] == _LEAF:
            return level
        level = _children(file, level)
    raise PagesRefusedError


def _children(file: _File, level: Positions) -> Positions:
    """Return the pages below the pages of one level, all of them interior."""
    bytes_ = file.read(level)
    cells = _cells(file, bytes_, _INTERIOR)
    pointers = np.concatenate((cells, np.arange(len(level)) * file.page_size + _RIGHTMOST))
    order = np.argsort(pointers // file.page_size, kind="stable")
    return _words(bytes_, pointers[order]) >> 32


def _words(bytes_: Bytes, at: Positions, byte_order: Literal["<", ">"] = ">") -> Positions:
    """Return the eight bytes from each position on as one integer."""
    everywhere: NDArray[np.int64] = np.ndarray((len(bytes_) - 7,), f"{byte_order}i8", bytes_, strides=(1,))
    return everywhere[at].astype(np.int64, copy=False)


def _cells(file: _File, bytes_: Bytes, kind: int) -> Positions:
    """Return where the cells of pages lie, in order.

    Raises:
        PagesRefusedError: a page is of another kind, or a cell lies outside its own page.
    """
    pages = bytes_[:-_PADDING].reshape(-1, file.page_size)
    counts = pages[:, 3].astype(np.int64) << 8 | pages[:, 4]
    begin = _PREFIX[kind] + 2 * counts
    if (pages[:, 0] != kind).any() or (begin > file.usable).any():
        raise PagesRefusedError
    most = int(counts.max())
    pointers = np.ascontiguousarray(pages[:, _PREFIX[kind] : _PREFIX[kind] + 2 * most]).view(">u2").astype(np.int64)
    used = np.arange(most) < counts[:, None]
    if (used & ((pointers < begin[:, None]) | (pointers > file.usable - 4))).any():
        raise PagesRefusedError
    pointers += (np.arange(len(pages)) * file.page_size)[:, None]
    return pointers[used]


def _read_leaves(file: _File, leaves: Positions, first: int, wanted: Sequence[_Wanted]) -> tuple[int, int]:
    """Read the rows of some leaves; return where the first belongs, by its rowid, and how many there are.

    Batches are read side by side: what an earlier one held isn't known yet.

    Raises:
        PagesRefusedError: a rowid is left out, or a row is not as it should be.
    """
    bytes_ = file.read(leaves)
    records = _records(file, bytes_, _cells(file, bytes_, _LEAF))
    count = len(records.rowids)
    position = int(records.rowids[0]) - first if count else -1
    expected = np.arange(first + position, first + position + count)
    outside = position < 0 or position + count > len(wanted[0].null)
    if outside or (records.rowids != expected).any():
        raise PagesRefusedError
    _read_rows(bytes_, records, slice(position, position + count), wanted)
    return position, count


@dataclass(frozen=True, slots=True)
class _Records:
    """Rows: their rowids, and where their records begin and end."""

    rowids: Positions
    starts: Positions
    ends: Positions


def _records(file: _File, bytes_: Bytes, cells: Positions) -> _Records:
    """Read what precedes each record: its length and its rowid, both in sevens of bits.

    Raises:
        PagesRefusedError: a record doesn't fit its page.
    """
    words = _words(bytes_, cells, "<")
    length, length_bytes = _varint(words, 2)
    rowids, rowid_bytes = _varint(words >> 8 * length_bytes, _ROWID_BYTES)
    starts = cells + length_bytes + rowid_bytes
    ends = starts + length
    page_ends = cells // file.page_size * file.page_size + file.usable
    if (length > file.usable - _SPARE).any() or (ends > page_ends).any():
        raise PagesRefusedError
    return _Records(rowids, starts, ends)


def _varint(words: Positions, most: int) -> tuple[Positions, Positions]:
    """Return the variable-length integers at the low ends of words, and how many bytes each took, at most `most`."""
    value, taken = np.zeros_like(words), np.zeros_like(words)
    going = np.ones(len(words), np.bool_)
    for _ in range(most):
        value = np.where(going, value << 7 | words & 0x7F, value)
        taken += going
        going &= (words & _MORE).astype(np.bool_)
        words = words >> 8
    if going.any():
        raise PagesRefusedError
    return value, taken


def _read_rows(bytes_: Bytes, records: _Records, rows: slice, wanted: Sequence[_Wanted]) -> None:
    """Read the wanted columns of rows.

    A record begins with a header: its own length, then one number a column that says what the column is.

    Raises:
        PagesRefusedError: a column is no integer, or missing, or reaches out of its record.
    """
    needed = {column.index for column in wanted}
    kinds, begin = _kinds(bytes_, records.starts, max(needed) + 1)
    header = bytes_[records.starts]
    offset, offsets = np.zeros(1, np.uint32), {}
    for index, kind in enumerate(kinds):
        if index in needed:
            offsets[index] = offset
        offset = offset + _widths(kind)
    at = records.starts + header
    left = records.ends - at - offset
    if (header >= _MORE).any() or (header < begin).any() or (left < 0).any() or left[header == begin].any():
        raise PagesRefusedError
    for column in wanted:
        _read_column(bytes_, at + offsets[column.index], kinds[column.index], rows, column)


def _widths(kinds: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.unsignedinteger[Any]]:
    """Return how many bytes the values of a column take, once where all are of one kind, as they mostly are."""
    table = _SHORT_WIDTHS if kinds.dtype == np.uint8 else _WIDTHS
    widths: NDArray[np.unsignedinteger[Any]] = table.take(kinds[:1] if kinds.min() == kinds.max() else kinds)
    return widths


def _kinds(bytes_: Bytes, starts: Positions, columns: int) -> tuple[NDArray[np.unsignedinteger[Any]], Positions | int]:
    """Return of what kind each of the first columns of records is, a row a column, and how many bytes say so.

    Raises:
        PagesRefusedError: a value has more bytes than a page.
    """
    if 2 * columns >= _PADDING:
        raise PagesRefusedError
    width = columns + 1
    every: NDArray[np.void] = np.ndarray((len(bytes_) - width + 1,), f"V{width}", bytes_, strides=(1,))
    short = np.ascontiguousarray(every[starts].view(np.uint8).reshape(-1, width).T)[1:]
    if (short < _MORE).all():
        return short, width
    kinds, at = np.empty(short.shape, np.uint16), starts + 1
    for kind in kinds:
        low, high = bytes_[at + 1], bytes_[at].astype(np.uint16)
        long = high >= _MORE
        if (low[long] >= _MORE).any():
            raise PagesRefusedError
        kind[:] = np.where(long, (high - _MORE) << 7 | low, high)
        at += 1 + long
    return kinds, at - starts


def _read_column(
    bytes_: Bytes, at: Positions, kinds: NDArray[np.unsignedinteger[Any]], rows: slice, column: _Wanted
) -> None:
    """Read one column of rows whose values lie at `at` and are of the given kinds."""
    lowest, highest = int(kinds.min()), int(kinds.max())
    if highest > _ONE or (kinds == _REAL).any():
        raise PagesRefusedError
    if lowest == highest and lowest in _WITHOUT_BYTES:
        column.values[rows] = lowest == _ONE
        column.null[rows] = lowest == 0
        return
    values = _words(bytes_, at)
    values >>= _SHIFTS[lowest] if lowest == highest else _SHIFTS.take(kinds)
    if highest >= _ZERO:
        values[kinds == _ZERO] = 0
        values[kinds == _ONE] = 1
    column.values[rows] = values
    if lowest == 0:
        column.null[rows] = kinds == 0
    if column.values.itemsize < values.itemsize and (misfits := column.values[rows] != values).any():
        column.null[rows] |= misfits
