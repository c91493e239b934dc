from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import InputError
from bubblefinder.trace import schema
from bubblefinder.trace.open import open_trace
from bubblefinder.trace.pages import PagesRefusedError
from bubblefinder.trace.sqlite import SqliteSource, open_sqlite
from tests.unit.trace.rows import CALLS, KERNELS, THREAD, call, change, differences, kernel, save

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl


def without_pages(*_: object) -> pl.DataFrame:
    raise PagesRefusedError


@pytest.fixture(params=["pages", "sqlite3"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test with each reader, and makes sure that it was what the test ran with."""
    read_slowly = SqliteSource._read_slowly

    def not_slowly(source: SqliteSource, stored: str, *more: object) -> schema.Rows:
        assert stored not in {KERNELS, CALLS}
        return read_slowly(source, stored, *more)  # type: ignore[arg-type]

    if request.param == "pages":
        monkeypatch.setattr(SqliteSource, "_read_slowly", not_slowly)
    else:
        monkeypatch.setattr("bubblefinder.trace.sqlite.read_pages", without_pages)
    return str(request.param)


def test_both_readers_load_the_same(sample: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = sample("tp2_before.node")
    fast = open_trace(path)
    monkeypatch.setattr("bubblefinder.trace.sqlite.read_pages", without_pages)
    assert differences(fast, open_trace(path)) == []


@pytest.mark.usefixtures("reader")
def test_nulls_first_and_64_bit_ids_come_through_exactly(tmp_path: Path) -> None:
    node = (0xFFFF_FFFE << 32 | 3) - (1 << 64)
    rows = [kernel(i, i + 1, graphNodeId=None, correlationId=None) for i in range(1, 5000)]
    rows.append(kernel(6000, 6001, graphNodeId=node, correlationId=0xFFFF_FFFF))
    loaded = open_trace(save(tmp_path / "x.sqlite", **{KERNELS: rows})).operations
    assert loaded["graph_node"].null_count() == loaded["correlation"].null_count() == 4999
    assert loaded.select("graph_node", "graph", "correlation").row(-1) == (node, 0xFFFF_FFFE, 0xFFFF_FFFF)


@pytest.mark.usefixtures("reader")
def test_negative_thread_ids_keep_their_bits(tmp_path: Path) -> None:
    thread = (0xFE << 56 | 1 << 48 | 77 << 24 | 5) - (1 << 64)
    loaded = open_trace(save(tmp_path / "x.sqlite", **{CALLS: [call(10, 15, globalTid=thread)]})).calls
    assert loaded.select("thread", "process").row(0) == (thread, 0xFE << 32 | 1 << 24 | 77)


@pytest.mark.parametrize("planted", ["'text'", "1.5", "x'00ff'"])
def test_rows_with_another_type_in_a_number_column_are_counted_and_left_out(tmp_path: Path, planted: str) -> None:
    rows = [kernel(i * 10, i * 10 + 5) for i in range(1, 6)]
    path = save(tmp_path / "x.sqlite", **{KERNELS: rows})
    change(path, f"UPDATE {KERNELS} SET streamId = {planted} WHERE start = 30")
    loaded = open_trace(path)
    assert loaded.operations["start_ns"].to_list() == [10, 20, 40, 50]
    assert loaded.operations["row"].to_list() == [0, 1, 3, 4]
    assert {note.code: note.count for note in loaded.notes}["unusable-rows"] == 1


def test_rows_keep_their_stored_position_whatever_an_index_suggests(tmp_path: Path) -> None:
    rows = [kernel(start, start + 5) for start in (50, 10, 30, 20, 40)]
    path = save(tmp_path / "x.sqlite", **{KERNELS: rows})
    columns = ", ".join(f'"{column.source}"' for column in schema.KERNELS.columns)
    change(path, f"CREATE INDEX everything ON {KERNELS}({columns})", f"DELETE FROM {KERNELS} WHERE start = 10")
    loaded = open_trace(path).operations
    assert loaded.select("start_ns", "row").rows() == [(20, 2), (30, 1), (40, 3), (50, 0)]


def test_a_large_table_with_holes_is_read_without_losing_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bubblefinder.trace.sqlite._FETCH", 64)
    count = 64 * 9 + 1
    path = save(tmp_path / "x.sqlite", **{KERNELS: [kernel(i * 10, i * 10 + 5) for i in range(1, count + 1)]})
    change(
        path,
        f"DELETE FROM {KERNELS} WHERE rowid BETWEEN 100 AND 300",
        f"UPDATE {KERNELS} SET rowid = -5 WHERE rowid = 1",
    )
    loaded = open_trace(path).operations
    assert loaded["start_ns"].to_list() == [i * 10 for i in range(1, count + 1) if not 100 <= i <= 300]
    assert loaded["row"].to_list() == list(range(count - 201))


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("text", ["", "é" * 28, "x" * 57, "x" * 58, "x" * 3_000, "x" * 4_060])
def test_long_texts_among_the_numbers_change_no_number(tmp_path: Path, text: str) -> None:
    texts = [*("word " * (number % 30) for number in range(200)), text]
    ranges = [
        {"start": start, "end": start + 1, "eventType": 59, "globalTid": THREAD, "text": one}
        for start, one in enumerate(texts, 1)
    ]
    loaded = open_trace(save(tmp_path / "x.sqlite", NVTX_EVENTS=ranges)).nvtx
    assert loaded.select("start_ns", "thread").rows() == [(start, THREAD) for start in range(1, 202)]
    assert loaded["text"].to_list() == [one[:1_024] for one in texts]


def test_a_table_without_rowids_is_read(tmp_path: Path) -> None:
    path = save(tmp_path / "x.sqlite", **{KERNELS: [kernel(20, 30), kernel(40, 50)]})
    columns = ", ".join(f'"{column.source}" INTEGER' for column in schema.KERNELS.columns)
    names = ", ".join(f'"{column.source}"' for column in schema.KERNELS.columns)
    change(
        path,
        f"ALTER TABLE {KERNELS} RENAME TO old",
        f'CREATE TABLE {KERNELS}({columns}, PRIMARY KEY("start")) WITHOUT ROWID',
        f"INSERT INTO {KERNELS} SELECT {names} FROM old",
    )
    assert open_trace(path).operations["start_ns"].to_list() == [20, 40]


def test_a_column_that_is_called_like_the_row_position_does_not_hide_it(tmp_path: Path) -> None:
    path = save(tmp_path / "x.sqlite", **{KERNELS: [kernel(20, 30), kernel(40, 50)]})
    change(path, f"ALTER TABLE {KERNELS} ADD COLUMN rowid INTEGER DEFAULT 7")
    assert open_trace(path).operations["start_ns"].to_list() == [20, 40]


def test_views_and_generated_columns_are_never_read(tmp_path: Path) -> None:
    path = save(tmp_path / "x.sqlite")
    change(
        path,
        f"CREATE VIEW NVTX_EVENTS AS SELECT 1 AS start, 59 AS eventType, {THREAD} AS globalTid, 'x' AS text",
        f"ALTER TABLE {KERNELS} DROP COLUMN graphNodeId",
        f"ALTER TABLE {KERNELS} ADD COLUMN graphNodeId INTEGER GENERATED ALWAYS AS (77) VIRTUAL",
    )
    loaded = open_trace(path)
    assert loaded.nvtx.is_empty()
    assert loaded.operations["graph_node"].to_list() == [None]


def test_the_connection_can_neither_write_nor_attach(tmp_path: Path) -> None:
    with open_sqlite(save(tmp_path / "x.sqlite")) as source:
        for statement in (
            "DELETE FROM StringIds",
            "ATTACH ':memory:' AS m",
            "PRAGMA journal_mode",
            "SELECT load_extension('x')",
        ):
            with pytest.raises(sqlite3.DatabaseError, match=r"not authorized|no such function"):
                source._connection.execute(statement).fetchall()


def test_bad_utf8_and_zero_bytes_in_names_are_kept_readable(tmp_path: Path) -> None:
    path = save(tmp_path / "x.sqlite")
    change(
        path,
        "UPDATE StringIds SET value = CAST(x'61ff62' AS TEXT) WHERE id = 1",
        "UPDATE StringIds SET value = CAST(x'610062' AS TEXT) WHERE id = 2",
    )
    assert open_trace(path).names == {1: "a\ufffdb", 2: "a\0b"}


def test_an_empty_name_is_a_name(tmp_path: Path) -> None:
    path = change(save(tmp_path / "x.sqlite"), "UPDATE StringIds SET value = '' WHERE id = 1")
    assert open_trace(path).names == {1: "", 2: "cudaLaunchKernel_v7000"}


def test_names_that_are_not_text_are_counted(tmp_path: Path) -> None:
    path = change(save(tmp_path / "x.sqlite"), "UPDATE StringIds SET value = x'00ff' WHERE id = 1")
    loaded = open_trace(path)
    assert loaded.names == {2: "cudaLaunchKernel_v7000"}
    assert {note.code: note.count for note in loaded.notes}["names-not-text"] == 1


def test_only_names_in_use_are_read(tmp_path: Path) -> None:
    path = change(save(tmp_path / "x.sqlite"), "INSERT INTO StringIds VALUES (9, 'API_TOKEN=hunter2')")
    loaded = open_trace(path)
    assert "hunter2" not in repr(loaded)
    assert 9 not in loaded.names


def test_a_table_with_its_version_in_its_name_is_found(tmp_path: Path) -> None:
    nvtx = [{"start": 5, "end": 50, "eventType": 59, "globalTid": THREAD, "textId": 3}]
    path = save(tmp_path / "x.sqlite", NVTX_EVENTS=nvtx)
    change(path, "ALTER TABLE NVTX_EVENTS RENAME TO NVTX_EVENTS_V3")
    assert open_trace(path).nvtx["text"].to_list() == ["a range"]
    change(path, "CREATE TABLE NVTX_EVENTS(start INTEGER)")
    assert open_trace(path).nvtx["text"].to_list() == ["a range"]


def test_an_export_that_is_being_written_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "x.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="locked"):
            open_trace(path)


def test_a_finished_write_ahead_database_is_read_without_a_file_beside_it(tmp_path: Path) -> None:
    path = change(save(tmp_path / "x.sqlite"), "PRAGMA journal_mode = WAL")
    assert [found.name for found in tmp_path.iterdir()] == ["x.sqlite"]
    assert open_trace(path).operations.height == 1
    assert [found.name for found in tmp_path.iterdir()] == ["x.sqlite"]


def test_changes_that_are_not_in_the_file_yet_are_not_overlooked(tmp_path: Path) -> None:
    path = save(tmp_path / "x.sqlite")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute(f"DELETE FROM {KERNELS}")
        writer.commit()
        with pytest.raises(InputError, match=r"x\.sqlite-wal beside it holds changes"):
            open_trace(path)
    (tmp_path / "y.sqlite-journal").write_bytes(bytes(512))
    assert open_trace(save(tmp_path / "y.sqlite")).operations.height == 1


def told(path: Path) -> dict[str, int | None]:
    return {note.code: note.count for note in open_trace(path).notes}


@pytest.mark.usefixtures("reader")
def test_names_that_the_export_lacks_are_counted(tmp_path: Path) -> None:
    path = change(save(tmp_path / "x.sqlite"), "DELETE FROM StringIds WHERE id = 2")
    assert told(path)["names-missing"] == 1


def test_rows_that_were_deleted_are_counted_and_warned_of(tmp_path: Path) -> None:
    path = save(tmp_path / "x.sqlite", **{KERNELS: [kernel(i * 10, i * 10 + 5) for i in range(1, 100)]})
    assert "rows-missing" not in told(path)
    change(path, f"DELETE FROM {KERNELS} WHERE start BETWEEN 300 AND 400")
    assert told(path)["rows-missing"] == 11
    nvtx = [{"start": i, "end": i + 1, "eventType": 59, "globalTid": THREAD, "textId": 3} for i in range(1, 9)]
    path = change(save(tmp_path / "y.sqlite", NVTX_EVENTS=nvtx), "DELETE FROM NVTX_EVENTS WHERE start = 4")
    assert [note.level for note in open_trace(path).notes if note.code == "rows-missing"] == ["warn"]


def test_pages_that_lie_in_each_others_place_are_damage(tmp_path: Path) -> None:
    path = save(tmp_path / "x.sqlite", **{KERNELS: [kernel(i * 10, i * 10 + 5) for i in range(1, 2000)]})
    content = bytearray(path.read_bytes())
    leaves = [at for at in range(4096, len(content), 4096) if content[at] == 0x0D]
    one, two = leaves[len(leaves) // 2], leaves[len(leaves) // 2 + 1]
    content[one : one + 4096], content[two : two + 4096] = content[two : two + 4096], content[one : one + 4096]
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged SQLite file: the rows of a table are out of order"):
        open_trace(path)


@pytest.mark.parametrize("length", [4_096, 4_097, 5_000_000])
def test_a_name_is_bounded_where_it_enters_and_said_to_be_cut(tmp_path: Path, length: int) -> None:
    path = change(save(tmp_path / "x.sqlite"), f"UPDATE StringIds SET value = '{'é' * length}' WHERE id = 1")
    loaded = open_trace(path)
    assert loaded.names[1] == "é" * 4_096
    assert {note.code: note.count for note in loaded.notes}.get("names-cut") == (1 if length > 4_096 else None)


def test_another_thread_is_refused_rather_than_left_to_wait_for_ever(tmp_path: Path) -> None:
    with open_sqlite(save(tmp_path / "x.sqlite")) as source, ThreadPoolExecutor(1) as pool:
        assert source.columns(schema.CALLS)
        refused = pool.submit(source.columns, schema.CALLS).exception()
    assert isinstance(refused, sqlite3.ProgrammingError)
