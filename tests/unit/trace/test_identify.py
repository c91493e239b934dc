from __future__ import annotations

import gzip
import lzma
import os
import sqlite3
from typing import TYPE_CHECKING

import pytest
from backports import zstd

from bubblefinder.errors import EXIT_INPUT, InputError
from bubblefinder.trace.open import open_trace
from tests.unit.trace.rows import bad

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def database(path: Path, *tables: str) -> Path:
    with sqlite3.connect(path) as connection:
        for table in tables:
            connection.execute(f"CREATE TABLE {table}(id INTEGER)")
        connection.execute("CREATE TABLE gone(id INTEGER)")
        connection.execute("DROP TABLE gone")
    connection.close()
    return path


BAD: dict[str, tuple[Callable[[Path], Path | str], str]] = {
    "empty": (lambda at: bad(at, "x.sqlite", b""), "is empty"),
    "random bytes": (lambda at: bad(at, "x.sqlite", bytes(range(7, 200))), "is not an Nsight Systems export"),
    "header only": (lambda at: bad(at, "x.sqlite", b"SQLite format 3\0"), "is cut short"),
    "garbage after the magic": (
        lambda at: bad(at, "x.sqlite", b"SQLite format 3\0" + bytes(range(100, 250)) * 4),
        "damaged SQLite",
    ),
    "no tables": (lambda at: database(at / "x.sqlite"), "without the tables"),
    "other tables": (lambda at: database(at / "x.sqlite", "users", "orders"), "without the tables"),
    "nvprof": (lambda at: database(at / "x.nvvp", "StringTable", "CUPTI_ACTIVITY_KIND_KERNEL"), "nvprof"),
    "rocpd": (lambda at: database(at / "x.db", "rocpd_kernelapi", "rocpd_string"), "ROCm"),
    "dlprof": (lambda at: database(at / "dlprof_dldb.sqlite", "dlprof_ops"), "DLProf"),
    "strings lost": (lambda at: database(at / "x.sqlite", "CUPTI_ACTIVITY_KIND_KERNEL"), "lost its StringIds"),
    "failed export": (lambda at: database(at / "x.sqlite", "StringIds", "ProcessStreams"), "export that failed"),
    "ncu": (lambda at: bad(at, "x.ncu-rep", b"NVR\0\x10\0\0\0"), "Nsight Compute"),
    "hdf5": (lambda at: bad(at, "x.h5", b"\x89HDF\r\n\x1a\n\0\0"), "HDF5"),
    "one parquet file": (lambda at: bad(at, "x.parquet", b"PAR1...PAR1"), "one table"),
    "one arrow file": (lambda at: bad(at, "x.arrow", b"ARROW1\0\0"), "one table"),
    "arrow stream": (lambda at: bad(at, "x.arrows", b"\xff\xff\xff\xff\x10\0\0\0"), "Arrow stream"),
    "report": (lambda at: bad(at, "x.json", b'{\n "benign": [],\n'), "report that bubblefinder wrote"),
    "page": (lambda at: bad(at, "x.html", b"<!doctype html>\n<html>"), "a page, not a capture"),
    "chrome trace": (lambda at: bad(at, "x.json", b'{"traceEvents": []}'), "Chrome trace"),
    "nsys json": (lambda at: bad(at, "x.json", b'{"Type":79,"CudaEvent":{}}\n'), "JSON export"),
    "our report": (
        lambda at: bad(at, "x.json", b'{"schema": "bubblefinder.report/1"}'),
        "report that bubblefinder wrote",
    ),
    "json": (lambda at: bad(at, "x.json", b"[1, 2]"), "a JSON file"),
    "zip": (lambda at: bad(at, "x.zip", b"PK\3\4...."), "zip"),
    "cut xz": (lambda at: bad(at, "x.xz", lzma.compress(b"a" * 5000)[:40]), "damaged or cut archive"),
    "cut gz": (lambda at: bad(at, "x.gz", gzip.compress(b"a" * 5000)[:-9]), "damaged or cut archive"),
    "cut zst": (lambda at: bad(at, "x.zst", zstd.compress(os.urandom(5000))[:-9]), "damaged or cut archive"),
    "packed text": (lambda at: bad(at, "x.gz", gzip.compress(b"hello")), "is not an Nsight Systems export"),
    "missing": (lambda at: at / "nothing.sqlite", "does not exist"),
    "pipe": (lambda _: "-", "a capture can't be read from standard input"),
    "empty folder": (lambda at: at, "folder without the tables"),
    "device": (lambda _: "/dev/null", "neither a file nor a folder"),
}


@pytest.mark.parametrize("case", BAD)
def test_anything_else_is_named_in_one_line_with_what_to_do(tmp_path: Path, case: str) -> None:
    make, said = BAD[case]
    with pytest.raises(InputError) as caught:
        open_trace(make(tmp_path))
    message = str(caught.value)
    assert said in message
    assert "\n" not in message + caught.value.hint
    assert caught.value.hint
    assert caught.value.exit_code == EXIT_INPUT
