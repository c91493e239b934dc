"""What is drawn, exported in any generation of the schema and loaded again is what was drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from bubblefinder.trace.columns import FRAMES
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.model import GRAPH
from bubblefinder.trace.open import open_trace
from tests.captures import captures
from tests.exports import GENERATIONS, export

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.trace.model import Trace

EVERYTHING = """
    nvtx     | [step 0       ][step 1      ]
    api      | GG C.SRW......GG C..........
    p2 api2  | ..KK........................
    gpu0 s7  | ..aabb.c........aabb.c.......
    gpu0 s7  | ......d...........d..........
    gpu0 s14 | ...........C.............C...
    p2 gpu1  | ....KKK......................
    profiler | ...PPP
    os       | ........OO
    nodes    | N
    G = graph 5 a b c d
    b = memset 64
    C = copy DtoH 8 pageable via cudaMemcpy_v3020 at resolve at run_batch
    S = cudaStreamSynchronize_v3020 s7
    R = cudaEventRecord_v3020 s7 e3
    W = cudaEventSynchronize_v3020 e3
    K = kernel 'void decode<float>(float*)'
    P = name CUDA profiling data flush overhead
    O = name pthread_cond_wait
"""
GENERATION = pytest.mark.parametrize("schema", GENERATIONS)


def texts(trace: Trace, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with texts for string ids, which an export numbers anew."""
    if "name" not in frame.columns or frame.schema["name"] == pl.String:
        return frame
    return frame.with_columns(pl.col("name").replace_strict(dict(trace.names), default=None, return_dtype=pl.String))


def check(found: Trace, drawn: Trace, schema: str) -> None:
    """Compare the frames, without what the generation has no column for."""
    linked = GENERATIONS.index(schema) >= GENERATIONS.index("3.20")
    for name in FRAMES:
        mine, theirs = texts(found, getattr(found, name)), texts(drawn, getattr(drawn, name))
        if not linked and "event_sync" in mine.columns:
            assert mine["event_sync"].null_count() == len(mine)
            mine, theirs = mine.drop("event_sync"), theirs.drop("event_sync")
        if "overhead_type" in mine.columns:
            mine, theirs = mine.drop("overhead_type"), theirs.drop("overhead_type")
        assert_frame_equal(mine, theirs, check_column_order=False)


@GENERATION
@pytest.mark.parametrize("lazy", [True, False], ids=["lazy", "all tables"])
def test_every_generation_holds_the_same_capture(schema: str, lazy: bool, tmp_path: Path) -> None:
    drawn = draw(EVERYTHING)
    found = open_trace(export(drawn, tmp_path / "capture.sqlite", schema=schema, lazy=lazy))
    check(found, drawn, schema)
    assert found.info.duration_ns == drawn.info.duration_ns
    assert [(p.process, p.pid) for p in found.info.processes] == [(p.process, p.pid) for p in drawn.info.processes]
    assert [gpu.gpu for gpu in found.info.gpus] == [0, 1]
    assert found.info.schema_version == (None if schema == "none" else f"{schema}.0")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(captures(), st.sampled_from(GENERATIONS))
def test_any_capture_survives_the_way_through_an_export(tmp_path: Path, trace: Trace, schema: str) -> None:
    rows_of_graphs = (trace.operations["kind"] == GRAPH).any()
    if rows_of_graphs and GENERATIONS.index(schema) < GENERATIONS.index("3.11"):
        schema = "3.11"
    path = tmp_path / "capture.sqlite"
    path.unlink(missing_ok=True)
    check(open_trace(export(trace, path, schema=schema)), trace, schema)
