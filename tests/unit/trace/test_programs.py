from __future__ import annotations

from dataclasses import replace

import pytest

from bubblefinder.trace.drawn import draw
from bubblefinder.trace.programs import find_programs, is_llm
from bubblefinder.trace.sketch import process_key, thread_key


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


def test_threads_of_programs_that_dont_use_the_gpu_tell_nothing() -> None:
    """An export names every thread of the machine, other engines' and the kernel's own among them."""
    trace = draw("api | A.\ngpu0 s7 | .A\nA = kernel gemm", us_per_char=1)
    mine, other = int(trace.calls["thread"][0]), thread_key(process_key(4242), 4242)
    names = {mine: "VLLM::EngineCor", other: "sglang::schedul", thread_key(process_key(86), 86): "khugepaged"}
    assert find_programs(replace(trace, thread_names=names)) == ("vllm", "llm")
    assert not is_llm(replace(trace, thread_names={key: name for key, name in names.items() if key != mine}))


@pytest.mark.parametrize("name", ["draft", "verify", "decode_step", "prefill_batch", "sglang::scheduler", "token 7"])
def test_a_language_model_is_told_by_its_ranges(name: str) -> None:
    assert is_llm(draw(f"nvtx | [{name}".ljust(40) + "]\napi | A.\ngpu0 s7 | .A\nA = kernel k", us_per_char=1))


@pytest.mark.parametrize("name", ["jacobi", "verify residual", "nvdec_decode", "europe", "time_step", "sample_bsdf"])
def test_other_programs_are_none(name: str) -> None:
    assert not is_llm(draw(f"api | A.\ngpu0 s7 | .A\nA = kernel '{name}'", us_per_char=1))
