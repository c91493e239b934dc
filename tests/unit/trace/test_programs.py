from __future__ import annotations

import pytest

from bubblefinder.trace.drawn import draw
from bubblefinder.trace.programs import find_programs, is_llm


@pytest.mark.parametrize(
    ("name", "programs"),
    [
        ("'void at::native::vectorized_elementwise_kernel<4>'", ("pytorch",)),
        ("triton_poi_fused_add_0", ("pytorch",)),
        ("flashinfer::BatchDecodeWithPagedKVCacheKernel", ("flashinfer", "llm")),
        ("flash_fwd_splitkv_kernel", ("llm",)),
        ("fused_rope_kernel", ("llm",)),
        ("my_torchlike_kernel", ()),
        ("gemm", ()),
    ],
)
def test_a_library_is_told_by_the_names_of_kernels(name: str, programs: tuple[str, ...]) -> None:
    trace = draw(f"api | A.\ngpu0 s7 | .A\nA = kernel {name}", us_per_char=1)
    assert find_programs(trace) == programs


def test_and_by_ranges_and_frames() -> None:
    trace = draw("nvtx | [vllm.step]\napi | A.\ngpu0 s7 | .A\nA = kernel gemm at aten::item", us_per_char=1)
    assert find_programs(trace) == ("pytorch", "vllm", "llm")


@pytest.mark.parametrize("name", ["draft", "verify", "decode_step", "prefill_batch", "sglang::scheduler", "token 7"])
def test_a_language_model_is_told_by_its_ranges(name: str) -> None:
    assert is_llm(draw(f"nvtx | [{name}".ljust(40) + "]\napi | A.\ngpu0 s7 | .A\nA = kernel k", us_per_char=1))


@pytest.mark.parametrize("name", ["jacobi", "verify residual", "nvdec_decode", "europe", "time_step", "sample_bsdf"])
def test_other_programs_are_none(name: str) -> None:
    assert not is_llm(draw(f"api | A.\ngpu0 s7 | .A\nA = kernel '{name}'", us_per_char=1))
