"""How many requests a step serves, of captures whose batch is known (sample_traces/README.md)."""

from __future__ import annotations

import polars as pl
import pytest

from bubblefinder.steps.lane import lanes
from bubblefinder.steps.request_blocks import by_blocks
from bubblefinder.trace.request_kernels import REQUEST_KERNELS, Counts, request_kernels
from tests import samples

SGLANG = sorted(path.name.removesuffix(".sqlite.xz") for path in (samples.FOLDER / "sglang").iterdir())
VLLM = sorted(path.name.removesuffix(".sqlite.xz") for path in (samples.FOLDER / "vllm").iterdir())
OTHERS = ["torch_eager", "torch_prefill.node", "torch_piecewise.node", "eager_item", "seeded/eager.node"]
MOST_UNKNOWN = 0.1
"""Share of the steps: those whose kernels fell into the window before."""


@pytest.mark.parametrize("name", SGLANG)
def test_sglang_serves_as_many_as_were_sent(name: str) -> None:
    batches = {"batch_8.graph": ["8"], "arrive.graph": ["1", "2"]}.get(name, ["1"])
    steps = samples.report(f"sglang/{name}").steps
    assert list(steps.requests_steps) == batches
    assert steps.requests_from == "launch_shapes"
    assert steps.count - sum(steps.requests_steps.values()) <= MOST_UNKNOWN * steps.count


def test_a_request_that_arrives_is_served_until_it_ends() -> None:
    rows = samples.report("sglang/arrive.graph").steps.rows
    assert rows[3].excluded == "prefill"
    assert [row.requests for row in rows] == [1, 1, 1, None, 2, 2, 2, None, *[1] * 15]


@pytest.mark.parametrize("name", VLLM)
def test_vllms_kernels_say_what_its_ranges_say(name: str) -> None:
    found = samples.analysis(f"vllm/{name}")
    (lane,) = lanes(found.timeline)
    windows = found.steps.windows
    blocks = by_blocks(found.timeline, lane, windows["start_ns"].to_numpy())
    decode = windows["excluded"].is_null()
    assert pl.Series(blocks).filter(decode).to_list() == windows["requests"].filter(decode).to_list()
    assert found.steps.of().requests_from == "nvtx"


@pytest.mark.parametrize("name", OTHERS)
def test_programs_that_serve_nobody_tell_no_number(name: str) -> None:
    steps = samples.report(name).steps
    assert steps.requests is None
    assert steps.requests_from is None
    assert not steps.requests_steps


def test_each_kernel_that_is_said_to_be_seen_counts_a_known_batch() -> None:
    seen = set()
    for name, batch in (
        ("sglang/fi.graph", 1),
        ("sglang/dspark.graph", 1),
        ("sglang/batch_8.graph", 8),
        ("vllm/full.graph", 1),
        ("vllm/batch_8.graph", 8),
    ):
        trace = samples.analysis(name).timeline.trace
        assert trace.grids is not None
        kernels = request_kernels(trace.names)
        launched = trace.operations.filter(pl.col("kind") == 0).join(trace.grids, on="row").select("name", "x", "y")
        for number, x, y in launched.iter_rows():
            kernel = kernels[number]
            counts = kernel.counts is Counts.REQUESTS or (kernel.counts is Counts.SLOTS)
            rows = kernel.split and y > 1 and name == "sglang/batch_8.graph"
            assert not (counts or rows) or x - kernel.beside == batch
            seen |= {kernel.name}
    assert seen == {one.name for one in REQUEST_KERNELS if one.seen}
