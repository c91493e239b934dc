"""How kernels were launched, from the columns of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from bubblefinder.trace.open import open_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("name", ["nextn_after_pdl.node", "dspark_before.node_pqtdir", "nextn_before.nsys2023.node"])
def test_every_kernel_has_a_shape(name: str, sample: Callable[[str], Path]) -> None:
    trace = open_trace(sample(name))
    assert trace.launch_shapes is not None
    shapes = trace.launch_shapes()
    assert shapes["row"].to_list() == list(range(len(trace.operations.filter(pl.col("kind") == 0))))
    assert shapes.row(2) == (2, "4x16", "384", 168, 164_308, 0)
    assert shapes.null_count().sum_horizontal().item() == 0


def test_a_capture_without_kernels_has_none(sample: Callable[[str], Path]) -> None:
    read = open_trace(sample("null_gpu_1.graph")).launch_shapes
    assert read is not None
    assert read().is_empty()


def test_grids_are_read_of_kernels_that_count_requests_alone(sample: Callable[[str], Path]) -> None:
    trace = open_trace(sample("sglang/batch_8.graph"))
    assert trace.grids is not None
    counted = trace.operations.filter(pl.col("kind") == 0).join(trace.grids, on="row", maintain_order="left")
    names = counted["name"].cast(pl.Int64).replace_strict(dict(trace.names), return_dtype=pl.String)
    grids = {(name, x, y) for name, x, y in zip(names.str.slice(0, 35), counted["x"], counted["y"], strict=True)}
    assert grids == {
        ("create_flashinfer_kv_indices_triton", 8, 1),
        ("void <unnamed>::clamp_position_kern", 1, 1),
        ("void at::native::reduce_kernel<(int", 8, 20),
    }


def test_nothing_is_read_of_a_program_that_only_samples(sample: Callable[[str], Path]) -> None:
    grids = open_trace(sample("eager_item")).grids
    assert grids is not None
    assert grids.is_empty()
