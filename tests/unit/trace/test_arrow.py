from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import polars as pl
import pytest

from bubblefinder.errors import InputError, NotATraceError
from bubblefinder.trace.open import open_trace
from tests.unit.trace.rows import KERNELS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def folder(sample: Callable[[str], Path], tmp_path: Path) -> Path:
    copy = tmp_path / "x_pqtdir"
    shutil.copytree(sample("dspark_before.node_pqtdir"), copy)
    for path in copy.iterdir():
        path.chmod(0o644)
    return copy


def rewrite(folder: Path, change: Callable[[pl.DataFrame], pl.DataFrame], table: str = KERNELS) -> None:
    path = folder / f"{table}.parquet"
    change(pl.read_parquet(path)).write_parquet(path)


def test_ids_above_the_signed_range_keep_their_bits(folder: Path) -> None:
    rewrite(folder, lambda rows: rows.with_columns(graphNodeId=pl.lit(2**64 - 2**32, dtype=pl.UInt64)))
    kernels = open_trace(folder).operations.filter(pl.col("kind") == 0)
    assert kernels.select("graph_node", "graph").unique().rows() == [(-(2**32), 0xFFFF_FFFF)]


def test_a_column_of_text_makes_rows_unusable_where_it_is_no_number(folder: Path) -> None:
    texts = pl.when(pl.int_range(pl.len()) < 3).then(pl.lit("x")).otherwise(pl.col("streamId").cast(pl.String))
    rewrite(folder, lambda rows: rows.with_columns(streamId=texts))
    loaded = open_trace(folder)
    assert {note.code: note.count for note in loaded.notes}["unusable-rows"] == 3
    assert loaded.operations.filter(pl.col("kind") == 0)["row"].min() == 3


def test_ids_stored_as_fractions_are_not_trusted(folder: Path) -> None:
    rewrite(folder, lambda rows: rows.with_columns(pl.col("globalPid").cast(pl.Float64)))
    loaded = open_trace(folder)
    assert {note.code: note.count for note in loaded.notes}["unusable-rows"] == 17_570


def test_a_missing_column_is_null(folder: Path) -> None:
    rewrite(folder, lambda rows: rows.drop("graphNodeId"))
    kernels = open_trace(folder).operations.filter(pl.col("kind") == 0)
    assert kernels["graph_node"].null_count() == kernels.height == 17_570


def test_a_missing_table_is_empty(folder: Path) -> None:
    (folder / "NVTX_EVENTS.parquet").unlink()
    loaded = open_trace(folder)
    assert loaded.nvtx.is_empty()
    assert "no-nvtx-ranges" in {note.code for note in loaded.notes}


@pytest.mark.parametrize("keep", [0, 100, 30_000])
def test_a_damaged_table_is_named(folder: Path, keep: int) -> None:
    path = folder / f"{KERNELS}.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(NotATraceError, match=rf"{KERNELS}\.parquet is a damaged table") as caught:
        open_trace(folder)
    assert "\n" not in str(caught.value)


def test_a_folder_without_strings_is_no_export(folder: Path) -> None:
    (folder / "StringIds.parquet").unlink()
    with pytest.raises(NotATraceError, match="lost its StringIds"):
        open_trace(folder)


SOUND = {
    "start": [1, 20], "end": [9, 30], "deviceId": [0, 0], "contextId": [1, 1], "streamId": [7, 7],
    "correlationId": [1, 2], "globalPid": [1 << 24, 1 << 24], "demangledName": [1, 1], "shortName": [1, 1],
}  # fmt: skip
HOSTILE = {
    "lists": pl.DataFrame(SOUND | {"start": [[1], [2]]}),
    "structs": pl.DataFrame(SOUND | {"demangledName": [{"a": 1}, {"a": 2}]}),
    "no numbers": pl.DataFrame(SOUND | {"end": [float("nan"), float("inf")]}),
    "decimals": pl.DataFrame(SOUND).with_columns(pl.col("start").cast(pl.Decimal(38, 0))),
    "bytes": pl.DataFrame(SOUND | {"demangledName": [b"a", b"\xff"]}),
    "dates": pl.DataFrame(SOUND).with_columns(pl.col("start").cast(pl.Datetime("ns"))),
    "long text": pl.DataFrame(SOUND | {"streamId": ["x" * 5_000_000, "y"]}),
    "no rows": pl.DataFrame(SOUND).head(0),
    "nulls": pl.DataFrame(SOUND | {"start": [None, None]}),
    "unsigned": pl.DataFrame(SOUND).with_columns(start=pl.lit(2**64 - 1, pl.UInt64)),
    "many columns": pl.DataFrame(SOUND | {f"c{number}": [0, 0] for number in range(2_000)}),
    "repeated": pl.concat([pl.DataFrame(SOUND)] * 3),
}


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("what", HOSTILE)
def test_a_table_that_holds_anything_is_read_or_refused_in_one_line(tmp_path: Path, what: str, suffix: str) -> None:
    for name, frame in (
        ("CUPTI_ACTIVITY_KIND_KERNEL", HOSTILE[what]),
        ("StringIds", pl.DataFrame({"id": [1], "value": ["k" * 10_000]})),
    ):
        path = tmp_path / f"{name}.{suffix}"
        (frame.write_parquet if suffix == "parquet" else frame.write_ipc_stream)(path)
    trace, refusal = None, ""
    try:
        trace = open_trace(tmp_path)
    except InputError as error:
        refusal = str(error)
    if trace is None:
        assert 0 < len(refusal) < 500
        assert "\n" not in refusal
    else:
        assert (trace.operations["end_ns"] >= trace.operations["start_ns"]).all()
        assert all(len(name) <= 4_096 for name in trace.names.values())
