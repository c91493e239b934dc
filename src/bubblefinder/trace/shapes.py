"""How kernels were launched: columns that every export has and that only a comparison reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.trace.schema import KIND_TABLES, Column, Table

if TYPE_CHECKING:
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
