"""How many requests a step serves, by kernels with one block a request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulate import Graph, Machine, nodes
from tests.unit.steps.found import steps_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulate import Host

TARGET = Graph(3, nodes("attention", "mlp", "experts") * 16)
ARGMAX = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>(T3)"
SAMPLED = "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024, float, int>(T1 *, T2 *)"
BEFORE = (("_prepare_pos_seq_lens_kernel", 1), ("_combine_sampled_and_draft_tokens_kernel", 0))
BEHIND = (("void VerifyTreeGreedy<int, long>(T1 *, T1 *)", 0), ("fill_bonus_tokens", 0))


def launched(host: Host, kernels: Sequence[tuple[str, int]], requests: int) -> None:
    for name, beside in kernels:
        host.kernel(name, 2, grid=(requests + beside, 1))


def engine(
    batches: Sequence[int],
    *,
    before: Sequence[tuple[str, int]] = BEFORE,
    behind: Sequence[tuple[str, int]] = BEHIND,
    ahead: bool = False,
    late: bool = False,
    mark: str | None = None,
) -> Machine:
    """A loop whose step prepares a batch, runs the target's graph and takes the result.

    `ahead`: the step behind is prepared while the graph still runs; `late`: the result is taken after the widest gap,
    as behind a grammar.
    """
    machine = Machine()
    host = machine.host()
    launched(host, before if ahead else (), batches[0])
    for number, requests in enumerate(batches):
        with host.range(mark):
            host.work(150)
            host.upload(64)
            launched(host, () if ahead else before, requests)
            host.replay(TARGET)
            if late:
                host.synchronize()
                host.work(400)
            launched(host, behind, requests)
            if ahead:
                launched(host, before, batches[min(number + 1, len(batches) - 1)])
            host.read(8)
    return machine


def own_and_told(machine: Machine, batches: Sequence[int]) -> list[tuple[int, int | None]]:
    """What each window with one replay of the target serves, and what is said of it."""
    steps = steps_of(machine.trace())
    numbers = steps.windows["requests"].to_list()
    windows = steps.replays["window_index"].to_list()
    assert len(windows) == len(batches)
    alone = {window for window in windows if windows.count(window) == 1}
    return [(own, numbers[window]) for own, window in zip(batches, windows, strict=True) if window in alone]


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("mark", ["decode_step", None])
def test_kernels_with_a_block_a_request_say_how_many_there_are(mark: str | None, ahead: bool) -> None:
    machine = engine([7] * 12, mark=mark, ahead=ahead)
    assert own_and_told(machine, [7] * 12) == [(7, 7)] * 12
    assert steps_of(machine.trace()).of().requests_from == "launch_shapes"


@given(
    batches=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=2, max_size=6),
    sides=st.sampled_from([(BEFORE, BEHIND), (BEFORE, ()), ((), BEHIND)]),
    ahead=st.booleans(),
    late=st.booleans(),
    mark=st.sampled_from(["decode_step", None]),
)
def test_no_other_number_than_the_steps_own_is_ever_told(
    batches: list[tuple[int, int]],
    sides: tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]],
    ahead: bool,
    late: bool,
    mark: str | None,
) -> None:
    """However the batch changes, wherever steps are cut, whichever kernels there are; and steady ones are told."""
    requests = [number for number, times in ((1, 4), *batches, (2, 4)) for _ in range(times)]
    machine = engine(requests, before=sides[0], behind=sides[1], ahead=ahead, late=late, mark=mark)
    found = own_and_told(machine, requests)
    assert all(number in {None, own} for own, number in found)
    steady = [
        found[one][1] for one in range(1, len(found) - 1) if len({own for own, _ in found[one - 1 : one + 2]}) == 1
    ]
    assert None not in steady


def plain(
    requests: int, *, rows: str = ARGMAX, grid: tuple[int, int] = (0, 20), slots: int = 8, **more: str
) -> Machine:
    """SGLang's loop without drafts: what prepares the graph knows its batch, and one row a request is sampled."""
    machine = Machine()
    host = machine.host()
    for _ in range(12):
        host.work(150)
        host.upload(64)
        host.kernel(more.get("prepares", "create_flashinfer_kv_indices_triton"), 2, grid=(slots, 1))
        host.replay(TARGET)
        host.kernel(rows, 20, grid=(grid[0] or requests, grid[1]))
        host.kernel(more.get("beside", "copies"), 2, grid=(1, 1))
        host.read(8)
    return machine


def numbers(machine: Machine) -> set[int | None]:
    windows = steps_of(machine.trace()).windows
    return set(windows.filter(pl.col("excluded").is_null())["requests"])


@pytest.mark.parametrize("rows", [ARGMAX, SAMPLED])
@pytest.mark.parametrize(
    "prepares", ["create_flashinfer_kv_indices_triton", "void <unnamed>::clamp_position_kernel<long>(T1 *)"]
)
def test_sampled_rows_are_requests_where_the_engine_shows_that_nothing_is_drafted(rows: str, prepares: str) -> None:
    assert numbers(plain(7, rows=rows, prepares=prepares)) == {7}


@pytest.mark.parametrize(
    "machine",
    [
        plain(7, prepares="somebody's kernel"),
        plain(7, beside="verify_drafts_kernel"),
        plain(7, slots=4),
        plain(7, grid=(7, 1)),
        plain(7, rows="somebody's argmax"),
    ],
    ids=["a training loop", "drafts", "more rows than slots", "a reduction in one block", "slots alone"],
)
def test_rows_are_no_requests_where_they_may_be_something_else(machine: Machine) -> None:
    steps = steps_of(machine.trace())
    assert set(steps.windows["requests"]) == {None}
    assert steps.of().requests_from is None


def test_kernels_inside_graphs_count_the_graphs_batch_and_say_nothing() -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(12):
        host.work(150)
        host.upload(64)
        host.replay(Graph(3, (*TARGET.nodes, ("VerifyTreeGreedy", 3))))
        host.read(8)
    trace = machine.trace()
    inside = trace.operations.filter(pl.col("graph_node").is_not_null())
    grids = inside.select("row", x=pl.lit(8, pl.Int64), y=pl.lit(1, pl.Int64))
    assert set(steps_of(replace(trace, grids=grids)).windows["requests"]) == {None}


def test_kernels_that_contradict_each_other_say_nothing() -> None:
    other = (("_get_num_sampled_and_rejected_kernel", 1),)
    assert numbers(engine([4] * 12, behind=(*BEHIND, *other))) == {None}


def test_what_a_range_says_goes_before() -> None:
    steps = steps_of(engine([4] * 12, mark="execute_context_0(0)_generation_3(3)").trace())
    assert set(steps.windows["requests"]) == {3}
    assert steps.of().requests_from == "nvtx"


def test_an_export_without_grids_says_nothing() -> None:
    trace = engine([4] * 12).trace()
    assert set(steps_of(replace(trace, grids=None)).windows["requests"]) == {None}
