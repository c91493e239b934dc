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
