"""Names of kernels that count requests."""

from __future__ import annotations

import pytest

from bubblefinder.trace.request_kernels import request_kernels


@pytest.mark.parametrize(
    "name",
    [
        "fill_bonus_tokens",
        "build_tree_efficient(long *, long *)",
        "void VerifyTreeGreedy<int, long>(T1 *, T1 *)",
        "void <unnamed>::clamp_position_kernel<long>(T1 *)",
        "void (anonymous namespace)::clamp_position_kernel<long>(T1 *)",
        "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024, float, int>(T1 *, T2 *)",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>(T3)",
    ],
)
def test_a_kernel_is_known_by_its_functions_name(name: str) -> None:
    assert set(request_kernels({7: name})) == {7}


@pytest.mark.parametrize(
    "name",
    [
        "my_fill_bonus_tokens",
        "fill_bonus_tokens_v2",
        "void at::native::vectorized_elementwise_kernel<4, build_tree_efficient(at::Tensor)::[lambda(int)], int>(T2)",
        "void wrapped<sgl::VerifyTreeGreedy<int, long>>(T1 *)",
        "void thrust::for_each<long, fill_bonus_tokens>(int)",
        "other::kernel(int, mine::assign_req_to_token_pool<3>)",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MaxOps<float>>>(T3)",
    ],
)
def test_a_name_that_only_holds_one_is_no_such_kernel(name: str) -> None:
    assert not request_kernels({7: name})
