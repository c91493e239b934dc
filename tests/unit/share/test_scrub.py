"""What is taken out of texts, and what stays."""

from __future__ import annotations

import pytest

from bubblefinder.share.scrub import Scrubber, code


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("decode_step", "decode_step"),
        ("step[DECODE bs=4 toks=8]", "step[DECODE bs=4 toks=8]"),
        ("BATCH=4", "BATCH=4"),
        ("load /home/alice/models/x.bin now", "load <path> now"),
        (r"load C:\Users\alice\x", "load <path>"),
        ("GET https://api.example.com/v1?key=1", "GET <address>"),
        ("mail alice@example.com", "mail <address>"),
        ("peer 10.1.2.3 is up", "peer <address> is up"),
        ("HF_TOKEN=abc", "<setting>"),
        ("key hf_abcdefghijkl", "key <secret>"),
        ("run 01234567-89ab-cdef-0123-456789abcdef", "run <id>"),
        ("alice's loop on GPUBOX", "<name>'s loop on <name>"),
        ("malice", "malice"),
    ],
)
def test_texts_lose_what_is_personal(text: str, left: str) -> None:
    assert Scrubber({"alice", "gpubox", "root", "x"}).text(text) == left


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>>(int, T2, T3)",
        "triton_poi_fused__to_copy_add_mul_0",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(Params)",
        "cudaGraphLaunch_v10000",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    ],
)
def test_names_of_code_stay(name: str) -> None:
    assert code(name) == name


def test_a_path_inside_a_name_of_code_goes() -> None:
    assert code("lambda at /home/alice/k.cu:12") == "lambda at <path>"


@pytest.mark.parametrize(
    ("kind", "text", "left"),
    [
        ("model", "NVIDIA H200", "NVIDIA H200"),
        ("model", "alice's GPU", ""),
        ("version", "2025.3.2.0", "2025.3.2.0"),
        ("version", "2023.4.4.54-234433681190v0", "2023.4.4.54-234433681190v0"),
        ("version", "alice", ""),
        ("fact", "EXPORT_SCHEMA_VERSION_MAJOR", "EXPORT_SCHEMA_VERSION_MAJOR"),
        ("fact", "EXPORT_USER", ""),
        ("word", "CUDA_MEMCPY_KIND_HTOD", "CUDA_MEMCPY_KIND_HTOD"),
        ("word", "two words", ""),
        ("thread", "pt_autograd_0", "pt_autograd_0"),
        ("thread", "alice-worker", ""),
        ("diagnostic", "Process 12 was launched by alice", ""),
        ("diagnostic", "Number of incomplete CUPTI events dropped: 3", "Number of incomplete CUPTI events dropped: 3"),
        (
            "diagnostic",
            "Loaded CUPTI library: /opt/nvidia/alice/libcupti.so.13.0",
            "Loaded CUPTI library: libcupti.so.13.0",
        ),
    ],
)
def test_texts_of_a_known_kind_are_kept_only_if_they_look_like_it(kind: str, text: str, left: str) -> None:
    assert Scrubber({"alice"}).clean(kind, text) == left


def test_a_serial_has_the_same_number_wherever_it_stands() -> None:
    scrubber = Scrubber(())
    assert [scrubber.clean("serial", text) for text in ("GPU-aa", "GPU-bb", "GPU-aa")] == ["GPU-0", "GPU-1", "GPU-0"]


def test_what_is_no_text_is_not_passed_on() -> None:
    assert Scrubber(()).clean("text", b"\0\1") is None
