"""Looking rows up by number: tables with a place for every number there may be, where that isn't far more than rows.

Ids that a program counts up lie close together. A table of them is filled and read in one pass, many times quicker than
a join, whose rows are hashed one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from bubblefinder import intervals
from bubblefinder.intervals import LONG_AGO, last_before

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints

NOWHERE: Final = -1
_SPARSE: Final = 8
_SMALL: Final = 1 << 16
_FEW_ROWS: Final = 1 << 12
"""So few rows are numbered by parting them, quicker than by ranks; of each different row that makes a frame."""
_FEW_VALUES: Final = 1 << 10
"""Values that lie so close together are as good as their ranks, for which they would be sorted."""
_FEW_GROUPS: Final = 16
"""So few groups are told apart by comparing all points with each of them, quicker than by a join."""


def column_of(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return a column of a frame that stays: one value that stands for all is not spelt out in a large frame."""
    return frame[name] if len(frame) <= _SMALL else frame.select(name).to_series()


def joint_keys(frames: Sequence[pl.DataFrame], group: str, number: str) -> tuple[list[Ints], int] | None:
    """Return one key for each group and number, the same in all frames, and how many keys there may be.

    Args:
        frames: with both columns; null in either makes the key NOWHERE.
        group: the column within which a number means something.
        number: the column of numbers.

    Returns:
        None where numbers lie so far apart that a table of them would be far larger than the frames.
    """
    groups = np.unique(np.concatenate([different(column_of(frame, group)).to_numpy() for frame in frames]))
    ends = [end for frame in frames for end in (frame[number].min(), frame[number].max()) if isinstance(end, int)]
    low, width = min(ends, default=0), max(ends, default=0) - min(ends, default=0) + 1
    if width * len(groups) > _SPARSE * sum(map(len, frames)) + _SMALL:
        return None
    return [_keys(column_of(frame, group), frame[number], groups, low, width) for frame in frames], width * len(groups)


def different(column: pl.Series) -> pl.Series:
    """Return the values of a column of numbers without null; of one, or of some close together, with little work."""
    lowest = column.min()
    if lowest == column.max():
        return column.clear() if lowest is None else pl.Series(column.name, [lowest], column.dtype)
    known: Ints = column.drop_nulls().to_numpy()
    low, width = int(known.min()), int(known.max()) - int(known.min()) + 1
    if width > len(known):
        return pl.Series(column.name, known).unique()
    found = intervals.different(np.subtract(known, low, dtype=np.int64), width) + low
    return pl.Series(column.name, found, column.dtype)


def _keys(group: pl.Series, number: pl.Series, groups: Ints, low: int, width: int) -> Ints:
    keys: Ints = (number.fill_null(low) if number.null_count() else number).to_numpy() - low
    if len(groups) > 1:
        keys += np.searchsorted(groups, group.fill_null(groups[0]).to_numpy()) * width
    for column in (number, group):
        if column.null_count():
            keys[column.is_null().to_numpy()] = NOWHERE
    return keys


def changes(*columns: NDArray[Any]) -> Bools:
    """Tell which rows differ from the one before in any column; the first does."""
    new = np.ones(len(columns[0]), np.bool_)
    for number, column in enumerate(columns):
        new[1:] = column[1:] != column[:-1] if not number else new[1:] | (column[1:] != column[:-1])
    return new


def order_of(keys: Sequence[Ints]) -> Ints | None:
    """Return the positions that sort by some keys, the first before the second, or None where they are sorted."""
    alike, behind = np.ones(max(len(keys[0]) - 1, 0), np.bool_), False
    for key in keys:
        behind = behind or bool((alike & (key[1:] < key[:-1])).any())
        alike &= key[1:] == key[:-1]
    return np.lexsort(keys[::-1]) if behind else None


def again(keys: Ints, size: int) -> int:
    """Return how many keys have occurred before."""
    seen = np.zeros(size + 1, np.bool_)
    seen[keys] = True
    return int(np.count_nonzero(keys != NOWHERE)) - int(np.count_nonzero(seen[:size]))


def repeated(keys: Ints, size: int) -> pl.Series:
    """Tell which keys occur more than once."""
    if not again(keys, size):
        return pl.Series([False]).new_from_index(0, len(keys))
    counts = np.append(np.bincount(keys[keys != NOWHERE], minlength=size), 0)
    return pl.Series(counts[keys] > 1)


def positions(keys: Ints, wanted: Ints, size: int) -> pl.Series:
    """Return for each wanted key the position that it has in keys, where each is once; null for none."""
    table = np.full(size + 1, NOWHERE, np.int32)
    table[keys] = np.arange(len(keys), dtype=np.int32)
    table[NOWHERE] = NOWHERE
    return nullable(table[wanted])


def place_among(numbers: Ints, wanted: Ints) -> Ints:
    """Return where each wanted number lies among numbers, each once but for NOWHERE; NOWHERE where it doesn't."""
    none = int(numbers.max(initial=NOWHERE)) + 1
    table = np.full(none + 1, NOWHERE, np.int32)
    table[numbers] = np.arange(len(numbers), dtype=np.int32)
    table[none] = NOWHERE
    return table[np.minimum(wanted, none)].astype(np.int64)


def nullable(places: NDArray[np.signedinteger[Any]]) -> pl.Series:
    """Return positions as a column in which NOWHERE is null: rows taken by it are null there."""
    nowhere = places == NOWHERE
    column = pl.Series(places.astype(np.uint32))
    return column.set(pl.Series(nowhere), None) if nowhere.any() else column


def kept(rows: pl.DataFrame, mask: pl.Series | Bools) -> pl.DataFrame:
    """Return the rows that a mask is true for: `DataFrame.filter`, which plans a query first and always copies.

    Of a small frame the former takes several times as long as the rest.
    """
    chosen = pl.Series(mask) if isinstance(mask, np.ndarray) else mask
    if len(rows) > _SMALL:
        return rows if chosen.all(ignore_nulls=False) else rows.filter(chosen)
    first, *others = rows
    return first.filter(chosen).to_frame().hstack([column.filter(chosen) for column in others])


def where(rows: pl.DataFrame, condition: pl.Expr | pl.Series) -> pl.DataFrame:
    """Return the rows for which a condition holds, as `kept` does: ``frame.pipe(where, condition)``."""
    return kept(rows, rows.select(condition).to_series() if isinstance(condition, pl.Expr) else condition)


def taken(rows: pl.DataFrame, at: pl.Series | Ints) -> pl.DataFrame:
    """Return rows by their positions, null for NOWHERE; of a small frame quicker than by its own index."""
    index = nullable(at) if isinstance(at, np.ndarray) else at
    if len(index) > _SMALL:
        return rows[index]
    first, *others = rows
    return first[index].to_frame().hstack([column[index] for column in others])


def on_gpu(rows: pl.DataFrame, gpu: int) -> pl.DataFrame:
    """Return the rows of one GPU from a frame sorted by it, without copying them: they lie together."""
    if rows.head(1)["gpu"].to_list() == rows.tail(1)["gpu"].to_list() == [gpu]:
        return rows
    gpus = column_of(rows, "gpu").to_numpy()
    first, last = gpus.searchsorted(np.array((gpu, gpu + 1), gpus.dtype))  # of another type all would be converted
    return rows[int(first) : int(last)]


def places(column: pl.Series) -> Ints:
    """Return a column of positions or ids as numbers, NOWHERE for null: the reverse of `nullable`."""
    if not column.null_count():
        return column.to_numpy().astype(np.int64)
    if len(column) > _SMALL or column.dtype == pl.Int64:  # half the memory; and no float holds all of 64 bits
        return column.cast(pl.Int64).fill_null(NOWHERE).to_numpy()
    values = column.to_numpy()
    return np.where(np.isnan(values), NOWHERE, values).astype(np.int64)


def numbered(rows: pl.DataFrame) -> tuple[list[tuple[Any, ...]], Ints]:
    """Return the different rows of a frame, in the order in which they come first, and which of these each row is."""
    if len(rows) > _FEW_ROWS:
        return _numbered_by_key(rows, *_joint_number(rows))
    parts = rows.with_row_index("").partition_by(rows.columns, maintain_order=True)
    positions = [part[""].to_numpy() for part in parts]
    number = np.empty(len(rows), np.int64)
    for place, mine in enumerate(positions):
        number[mine] = place
    first = pl.Series([int(mine[0]) for mine in positions], dtype=pl.UInt32)
    return list(zip(*(column[first] for column in rows), strict=True)), number


def _numbered_by_key(rows: pl.DataFrame, keys: Ints, size: int) -> tuple[list[tuple[Any, ...]], Ints]:
    """Return the same by a key of each row, of `size` keys that there may be."""
    first = np.full(size, len(rows))
    first[keys[::-1]] = np.arange(len(rows))[::-1]
    used = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(rows))]
    number = np.empty(size, np.int64)
    number[used] = np.arange(len(used))
    return rows[first[used]].rows(), number[keys]


def _joint_number(rows: pl.DataFrame) -> tuple[Ints, int]:
    """Return a number for each row, the same for the same values, and how many numbers there may be."""
    key, size = np.zeros(len(rows), np.int64), 1
    for column in rows:
        values = (column.cast(pl.Categorical) if column.dtype == pl.String else column).to_physical()
        if column.dtype == pl.Boolean:
            values = column.cast(pl.UInt8)
        low, high = values.min(), values.max()
        if values.null_count() in (0, len(values)) and low == high:
            continue
        if values.dtype.is_integer() and high - low < _FEW_VALUES:  # type: ignore[operator]
            number = (values.cast(pl.Int64) - (low - 1)).fill_null(0).to_numpy()  # type: ignore[operator]
        else:
            number = values.rank("dense").fill_null(0).to_numpy()
        several = int(number.max()) + 1
        key, size = key * several + number, size * several
        if size > len(rows) + _SMALL:
            known, key = np.unique(key, return_inverse=True)
            size = len(known)
    return key, size


def each_once(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the different rows of a frame, in the order in which they come first; most are like the one before."""
    return kept(rows, changes(*map(comparable, rows))).unique(maintain_order=True)


def comparable(column: pl.Series) -> Ints:
    """Return numbers by which to sort and group a column that may have nulls."""
    return column.to_numpy() if not column.null_count() else column.rank("dense").fill_null(0).to_numpy()


def previous(*keys: Ints) -> Ints:
    """Return for each row the position of the one before it that has the same values, NOWHERE for the first of them."""
    if not changes(*keys)[1:].any():
        return np.arange(-1, len(keys[0]) - 1)
    order = np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys)  # far quicker of long runs
    found = np.full(len(order), NOWHERE)
    same = np.logical_and.reduce([key[order[1:]] == key[order[:-1]] for key in keys])
    found[order[1:][same]] = order[:-1][same]
    return found


class Numbers(dict[str, int]):
    """Texts and their numbers in the order in which they were first asked for; asking numbers a new one."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


@dataclass(frozen=True, eq=False)
class ByThread:
    """Rows of a frame by the thread they are of, told apart in one pass when first asked for.

    Attributes:
        rows: with thread.
    """

    rows: pl.DataFrame

    @cached_property
    def positions(self) -> dict[int, pl.Series]:
        """The positions of each thread's rows, in order."""
        threads = column_of(self.rows, "thread")
        position = pl.int_range(len(threads), dtype=pl.UInt32, eager=True)
        if len(threads) and not threads.null_count() and threads.min() == threads.max():
            return {threads[0]: position}
        grouped = pl.DataFrame([threads, position.alias("position")]).group_by("thread").agg("position")
        return dict(zip(grouped["thread"].to_list(), grouped["position"], strict=True))

    def at(self, thread: int | None) -> pl.Series:
        """Return the positions of the rows of one thread; of none for null."""
        none = pl.Series(dtype=pl.UInt32)
        return none if thread is None else self.positions.get(thread, none)

    def of(self, thread: int | None, *columns: str) -> pl.DataFrame:
        """Return some columns of the rows of one thread, in order; of none for null."""
        mine, rows = self.at(thread), self.rows[list(columns)]
        return rows if len(mine) == len(rows) else taken(rows, mine)


@dataclass(frozen=True, slots=True)
class Timetable:
    """Rows of several groups in order of time, to be asked what came last before a time, or first after it.

    Attributes:
        groups: the columns that name a group, and `group`, its number.
        bounds: where each group begins, and behind the last where that ends.
        rows: the position of each entry in the frame that it is from.
        times: of the entries.
    """

    groups: pl.DataFrame
    bounds: Ints
    rows: Ints
    times: Ints

    @classmethod
    def of(cls, frame: pl.DataFrame, by: Sequence[str], time: str, chosen: pl.Series | None = None) -> Timetable:
        """Return the timetable of a frame sorted by `by` and `time`, or of some of its rows."""
        picked: slice | Ints = slice(None)
        if chosen is not None and not chosen.all():
            picked = np.flatnonzero(chosen.to_numpy())
        rows = np.arange(len(frame))[picked]
        keys = [comparable(column_of(frame, name))[picked] for name in by]
        first = np.flatnonzero(changes(*keys))
        groups = taken(frame[list(by)], rows[first]).with_row_index("group")
        return cls(groups, np.append(first, len(rows)), rows, frame[time].to_numpy()[picked])

    def last(self, points: pl.DataFrame, times: Ints) -> Ints:
        """Return for each point the last row of its group at or before a time, NOWHERE if there is none."""
        found = np.full(len(points), NOWHERE, np.int64)
        for low, high, mine in self._parts(points):
            place = last_before(times[mine], self.times[low:high])
            found[mine] = np.where(place >= 0, self.rows[low:high][place], NOWHERE)
        return found

    def holding(self, points: pl.DataFrame, times: Ints, ends: Ints) -> Ints:
        """Return the same where that row has not ended by then; `ends` says when each row of the frame does."""
        last = self.last(points, times)
        return np.where(times < np.append(ends, LONG_AGO)[last], last, NOWHERE)

    def first(self, points: pl.DataFrame, times: Ints) -> Ints:
        """Return for each point the first row at or after a time, NOWHERE if there is none."""
        found = np.full(len(points), NOWHERE, np.int64)
        for low, high, mine in self._parts(points):
            place = np.searchsorted(self.times[low:high], times[mine], side="left")
            found[mine] = np.append(self.rows[low:high], NOWHERE)[place]
        return found

    def _parts(self, points: pl.DataFrame) -> Iterator[tuple[int, int, Ints]]:
        """Yield the bounds of each group that points are of, and which points these are."""
        by = [name for name in self.groups.columns if name != "group"]
        if len(self.groups) <= _FEW_GROUPS:
            for number, named in enumerate(self.groups[by].iter_rows()):
                if None in named:
                    continue
                mine = reduce(and_, (points[name] == one for name, one in zip(by, named, strict=True)))
                known = mine.fill_null(value=False) if mine.null_count() else mine
                yield int(self.bounds[number]), int(self.bounds[number + 1]), np.flatnonzero(known.to_numpy())
            return
        group = points.select(by).join(self.groups, on=by, how="left", maintain_order="left")["group"]
        numbers = group.cast(pl.Int64).fill_null(NOWHERE).to_numpy()
        order = np.argsort(numbers, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if len(order) else ():
            if (number := int(numbers[part[0]])) != NOWHERE:
                yield int(self.bounds[number]), int(self.bounds[number + 1]), part
