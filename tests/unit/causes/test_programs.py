from __future__ import annotations

import pytest

from bubblefinder.causes.programs import find_programs
from bubblefinder.trace.drawn import draw


@pytest.mark.parametrize(
    ("name", "programs"),
    [
        ("'void at::native::vectorized_elementwise_kernel<4>'", ("pytorch",)),
        ("triton_poi_fused_add_0", ("pytorch",)),
        ("flashinfer::BatchDecodeWithPagedKVCacheKernel", ("flashinfer",)),
        ("my_torchlike_kernel", ()),
        ("gemm", ()),
    ],
)
def test_a_library_is_told_by_the_names_of_kernels(name: str, programs: tuple[str, ...]) -> None:
    trace = draw(f"api | A.\ngpu0 s7 | .A\nA = kernel {name}", us_per_char=1)
    assert find_programs(trace) == programs


def test_and_by_ranges_and_frames() -> None:
    trace = draw("nvtx | [vllm.step]\napi | A.\ngpu0 s7 | .A\nA = kernel gemm at aten::item", us_per_char=1)
    assert find_programs(trace) == ("pytorch", "vllm")
