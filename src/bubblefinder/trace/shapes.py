"""How kernels were launched: columns that every export has; all are read for a comparison, a few for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.trace.model import KERNEL
from bubblefinder.trace.request_kernels import Counts, request_kernels
from bubblefinder.trace.schema import KIND_TABLES, Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bubblefinder.trace.schema import Source

COLUMNS: Final = {
    "row": pl.UInt32,
    "grid": pl.String,
    "block": pl.String,
    "registers": pl.Int64,
    "shared_bytes": pl.Int64,
    "local_bytes": pl.Int64,
}
_AXES: Final = ("X", "Y", "Z")
_SHAPES: Final = Table(
    KIND_TABLES[0],
    (
        *(Column(f"{name}{axis}", f"{name}{axis}") for name in ("grid", "block") for axis in _AXES),
        Column("registersPerThread", "registers"),
        Column("staticSharedMemory", "static_bytes"),
        Column("dynamicSharedMemory", "dynamic_bytes"),
        Column("localMemoryPerThread", "local_bytes"),
    ),
    bulk=True,
)
_GRIDS: Final = Table(KIND_TABLES[0], (Column("gridX", "x"), Column("gridY", "y")), bulk=True)


def read_grids(source: Source, operations: pl.DataFrame, names: Mapping[int, str]) -> pl.DataFrame:
    """Return the grids of the kernels outside graphs that count requests; nothing is read where only rows are counted.

    Args:
        source: the export.
        operations: what was read of it.
        names: texts by string id.

    Returns:
        row (position in the KERNEL table as stored), x and y (blocks along these axes); of kernels that have both.
    """
    kernels = request_kernels(names)
    if all(kernel.counts is Counts.ROWS for kernel in kernels.values()):
        return _GRIDS.empty()
    counting = pl.col("name").is_in(list(kernels)) & pl.col("graph_node").is_null()
    rows = operations.lazy().filter((pl.col("kind") == KERNEL) & counting).select("row").collect()
    return source.read(_GRIDS).frame.join(rows, on="row", how="semi").drop_nulls() if len(rows) else _GRIDS.empty()


def read_shapes(source: Source) -> pl.DataFrame:
    """Return how each kernel was launched.

    Returns:
        row (position in the KERNEL table as stored), grid and block (String, as ``80x4``, null where the export lacks
        them), registers (a thread), shared_bytes (a block, static and dynamic together), local_bytes (a thread).
    """
    frame = source.read(_SHAPES).frame
    return frame.select(
        "row",
        "registers",
        "local_bytes",
        grid=_size("grid"),
        block=_size("block"),
        shared_bytes=pl.col("static_bytes") + pl.col("dynamic_bytes"),
    ).select(*COLUMNS)


def _size(name: str) -> pl.Expr:
    """Return a size in words, without the axes that are 1 at its end."""
    x, y, z = (pl.col(f"{name}{axis}") for axis in _AXES)
    return (
        pl.when(z != 1)
        .then(pl.format("{}x{}x{}", x, y, z))
        .when(y != 1)
        .then(pl.format("{}x{}", x, y))
        .otherwise(x.cast(pl.String))
    )
