"""Ways to damage an export, each deterministic for its seed: what disks, copies, scripts and other versions make of it.

A mutation changes a SQLite file in place, one of `FOLDERS` a folder of tables. `SAME` names those after which the
report must be what it was, `SAME_OR_TOLD` those after which it must be, unless the tool says that something is wrong.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from bubblefinder.trace import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from random import Random

    Mutation = Callable[[Path, Random, Path], None]

EPOCH_NS = 1_700_000_000 * 10**9
READ = {table.name: table for table in vars(schema).values() if isinstance(table, schema.Table)}
TIMES = ("start", "end", "timestamp")
THREADS = ("globalTid", "globalPid", "endGlobalTid")
OTHER_NAMES = {
    "NVTX_EVENTS": "NVTX_EVENTS_V3",
    "CUPTI_ACTIVITY_KIND_KERNEL": "CUPTI_ACTIVITY_KIND_KERNEL_V2",
    "META_DATA_EXPORT": "EXPORT_META_DATA",
    "EXPORT_META_DATA": "META_DATA_EXPORT",
    "TARGET_INFO_CUDA_CONTEXT_INFO": "TARGET_INFO_CUDA_NULL_STREAM",
}
OTHER_COLUMNS = {
    "syncType": "deprecatedSyncType", "srcId": "deprecatedSrcId", "demangledName": "mangledName",
    "graphExecId": "execId", "globalPid": "globalVid", "correlationId": "correlation",
    "streamId": "stream", "start": "startNs", "text": "label",
}  # fmt: skip
PLANTED = ("NULL", "NULL", "NULL", "0", "-1", "9223372036854775807", "-9223372036854775808", "1.5", "'text'", "x'00ff'")


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


def tables(path: Path) -> list[str]:
    """The tables of a file in stored order."""
    with closing(sqlite3.connect(path)) as db:
        return [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")]


def columns(path: Path, table: str) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]


def _read_tables(path: Path) -> list[str]:
    return [name for name in tables(path) if name in READ]


def _read_columns(path: Path, table: str) -> list[str]:
    wanted = {column.source for column in READ[table].columns}
    return [name for name in columns(path, table) if name in wanted]


def _unbound(path: Path, table: str) -> None:
    """Make a table anew without constraints, so that anything can be planted in it."""
    names = ", ".join(f'"{name}"' for name in columns(path, table))
    change(
        path,
        f'ALTER TABLE "{table}" RENAME TO "old table"',
        f'CREATE TABLE "{table}" ({names})',
        f'INSERT INTO "{table}" SELECT {names} FROM "old table"',
        'DROP TABLE "old table"',
    )


def cut_at_table(path: Path, random: Random, _: Path) -> None:
    """The export was interrupted: a table and all behind it are missing."""
    present = tables(path)
    first = present.index(random.choice(_read_tables(path) or present))
    change(path, *(f'DROP TABLE "{name}"' for name in present[first:] if not name.startswith("sqlite_")))


def empty_table(path: Path, random: Random, _: Path) -> None:
    change(path, f'DELETE FROM "{random.choice(_read_tables(path))}"')


def drop_table(path: Path, random: Random, _: Path) -> None:
    change(path, f'DROP TABLE "{random.choice(_read_tables(path))}"')


def drop_columns(path: Path, random: Random, _: Path) -> None:
    """Columns that are read are missing, as in versions that lack them."""
    table = random.choice(_read_tables(path))
    _unbound(path, table)
    present = _read_columns(path, table)
    gone = random.sample(present, min(len(columns(path, table)) - 1, random.randint(1, 3), len(present)))
    change(path, *(f'ALTER TABLE "{table}" DROP COLUMN "{name}"' for name in gone))


def rename_columns(path: Path, random: Random, _: Path) -> None:
    table = random.choice(_read_tables(path))
    present = columns(path, table)
    known = [name for name in present if name in OTHER_COLUMNS and OTHER_COLUMNS[name] not in present]
    change(path, *(f'ALTER TABLE "{table}" RENAME COLUMN "{n}" TO "{OTHER_COLUMNS[n]}"' for n in known))


def rename_tables(path: Path, _: Random, __: Path) -> None:
    present = tables(path)
    known = {old: new for old, new in OTHER_NAMES.items() if old in present and new not in present}
    change(path, *(f'ALTER TABLE "{old}" RENAME TO "{new}"' for old, new in known.items()))


def drop_unread(path: Path, _: Random, __: Path) -> None:
    """Everything that isn't read is missing."""
    for table in tables(path):
        if table not in READ:
            change(path, f'DROP TABLE "{table}"')
            continue
        _unbound(path, table)
        read = _read_columns(path, table)
        unread = [name for name in columns(path, table) if name not in read] if read else []
        change(path, *(f'ALTER TABLE "{table}" DROP COLUMN "{name}"' for name in unread))


def plant(path: Path, random: Random, _: Path) -> None:
    """Nulls and other strangers among the values of a column."""
    table = random.choice(_read_tables(path))
    _unbound(path, table)
    column = random.choice(_read_columns(path, table) or columns(path, table))
    where = random.choice(("1", "rowid = 1", "rowid % 100 = 1", "rowid % 2 = 0"))
    change(path, f'UPDATE "{table}" SET "{column}" = {random.choice(PLANTED)} WHERE {where}')


def _moves(path: Path, names: list[str], by: int) -> Iterator[str]:
    for table in names:
        for column in set(TIMES) & set(columns(path, table)):
            yield f'UPDATE "{table}" SET "{column}" = "{column}" + ({by}) WHERE "{column}" != 0'


def shift_all(path: Path, random: Random, _: Path) -> None:
    """Another clock: all times before zero, or counted from 1970."""
    change(path, *_moves(path, _read_tables(path), random.choice((-(2**40), EPOCH_NS))))


def shift_gpu(path: Path, random: Random, _: Path) -> None:
    """The GPU's clock disagrees with the host's."""
    mine = [table.name for table in schema.OPERATIONS if table.name in tables(path)]
    change(path, *_moves(path, mine, random.choice((-(10**3), -(10**6), -(10**9), 10**6, 10**9, 2**61))))


def top_bit(path: Path, _: Random, __: Path) -> None:
    """Ids use all their 64 bits."""
    for table in _read_tables(path):
        for column in set(THREADS) & set(columns(path, table)):
            top = f'"{column}" | -9223372036854775808'
            change(path, f'UPDATE "{table}" SET "{column}" = {top} WHERE "{column}" IS NOT NULL')
    if "TARGET_INFO_CUDA_CONTEXT_INFO" in tables(path):
        change(path, 'UPDATE "TARGET_INFO_CUDA_CONTEXT_INFO" SET hwId = hwId | 128')


def twice(path: Path, random: Random, _: Path) -> None:
    """Every row of a table is there twice."""
    table = random.choice([name for name in _read_tables(path) if name != schema.STRING_IDS])
    _unbound(path, table)
    change(path, f'INSERT INTO "{table}" SELECT * FROM "{table}"')


def merge(path: Path, _: Random, other: Path) -> None:
    """The rows of another capture behind those of this one, as scripts that merge ranks do."""
    theirs = tables(other)
    for table in _read_tables(path):
        if table not in theirs:
            continue
        common = [name for name in columns(path, table) if name in columns(other, table)]
        _unbound(path, table)
        listed = ", ".join(f'"{name}"' for name in common)
        with closing(sqlite3.connect(path)) as db:
            db.execute("ATTACH ? AS other", (str(other),))
            db.execute(f'INSERT INTO "{table}" ({listed}) SELECT {listed} FROM other."{table}"')
            db.commit()


def concatenate(path: Path, _: Random, other: Path) -> None:
    path.write_bytes(path.read_bytes() + other.read_bytes())


def cut_bytes(path: Path, random: Random, _: Path) -> None:
    path.write_bytes(path.read_bytes()[: random.randrange(path.stat().st_size)])


def _page_size(content: bytearray) -> int:
    return int.from_bytes(content[16:18]) if int.from_bytes(content[16:18]) > 1 else 65_536


def flip_page_headers(path: Path, random: Random, __: Path) -> None:
    """A few bytes change in the header of a page."""
    content = bytearray(path.read_bytes())
    size = _page_size(content)
    page = random.randrange(max(1, len(content) // size))
    for _ in range(random.randint(1, 3)):
        content[(page * size + random.randrange(12)) % len(content)] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def flip_bytes(path: Path, random: Random, __: Path) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(random.choice((1, 10, 1000))):
        content[random.randrange(len(content))] = random.randrange(256)
    path.write_bytes(content)


def zero_block(path: Path, random: Random, _: Path) -> None:
    """A stretch of the file was never written."""
    content = bytearray(path.read_bytes())
    start = random.randrange(len(content))
    length = min(random.choice((512, 4096, 65_536)), len(content) - start)
    content[start : start + length] = bytes(length)
    path.write_bytes(content)


def swap_pages(path: Path, random: Random, _: Path) -> None:
    """Two pages lie in each other's place."""
    content = bytearray(path.read_bytes())
    size = _page_size(content)
    one, two = (random.randrange(max(1, len(content) // size)) * size for _ in range(2))
    content[one : one + size], content[two : two + size] = content[two : two + size], content[one : one + size]
    path.write_bytes(content)


def _table_file(folder: Path, random: Random) -> Path:
    """A file of a Parquet or Arrow folder, more often than not one that is read."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return random.choice([path for path in files if path.stem in READ] * 9 + files)


def drop_file(path: Path, random: Random, _: Path) -> None:
    _table_file(path, random).unlink()


def cut_file(path: Path, random: Random, _: Path) -> None:
    cut_bytes(_table_file(path, random), random, path)


def flip_file(path: Path, random: Random, _: Path) -> None:
    flip_bytes(_table_file(path, random), random, path)


def zero_file(path: Path, random: Random, _: Path) -> None:
    zero_block(_table_file(path, random), random, path)


def other_table(path: Path, random: Random, _: Path) -> None:
    """A file holds another table than its name says."""
    _table_file(path, random).write_bytes(_table_file(path, random).read_bytes())


FOLDERS: dict[str, Mutation] = {m.__name__: m for m in (drop_file, cut_file, flip_file, zero_file, other_table)}
SAME: dict[str, Mutation] = {m.__name__: m for m in (rename_tables, drop_unread, shift_all, top_bit)}
SAME_OR_TOLD: dict[str, Mutation] = {m.__name__: m for m in (concatenate, cut_bytes, flip_page_headers, swap_pages)}
ROWS: dict[str, Mutation] = {
    m.__name__: m
    for m in (cut_at_table, empty_table, drop_table, drop_columns, rename_columns, plant, shift_gpu, twice, merge)
}
BYTES: dict[str, Mutation] = {m.__name__: m for m in (flip_bytes, zero_block)}
MUTATIONS = SAME | SAME_OR_TOLD | ROWS | BYTES | FOLDERS
DATABASES = SAME | SAME_OR_TOLD | ROWS | BYTES
