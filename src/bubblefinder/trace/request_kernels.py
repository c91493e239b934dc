"""Kernels whose sources launch one block a request: what they are called, and which axis of their grid counts.

A graph is captured for a batch and replayed for any smaller one, so a kernel inside a graph counts the graph's batch;
some outside prepare that graph and are launched for its batch too. Both count padding and stand here as `SLOTS` or not
at all. Sampled rows are requests only where no drafts are verified.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


class Counts(StrEnum):
    """What the blocks of a kernel are, see `COUNTS`."""

    REQUESTS = "requests"
    ROWS = "rows"
    SLOTS = "slots"
    NOTHING = "nothing"


COUNTS: Final = {
    Counts.REQUESTS: "the batch's",
    Counts.ROWS: "sampled rows of logits; requests beside a kernel of the engine's that shows a step without drafts",
    Counts.SLOTS: "those of the graph that is prepared, at least as many as requests; shows a step without drafts too, "
    "where no kernel is called after them",
    Counts.NOTHING: "it only shows a step without drafts",
}


@dataclass(frozen=True, slots=True)
class RequestKernel:
    """A kernel that counts along the x axis of its grid.

    Attributes:
        name: a pattern of the function's name.
        counts: what its blocks are.
        side: whether it comes before the pass over the model in whose step it counts, or behind it.
        source: where the launch is written, and in which version it was read.
        beside: blocks that are no requests'.
        within: what its whole name holds besides.
        split: it counts only where the grid has a second axis.
        seen: a sample capture of a known batch has it, and it counts right there.
    """

    name: str
    counts: Counts
    side: Literal["before", "behind"]
    source: str
    beside: int = 0
    within: str = ""
    split: bool = False
    seen: bool = True


_SGLANG: Final = "SGLang 0.5.17, srt/"
_SGLANG_OPS: Final = "SGLang 0.5.17, kernels/ops/speculative/"
_SGL_KERNEL: Final = "sgl-kernel, csrc/speculative/"
_VLLM: Final = "vLLM 0.26.0, v1/"
_FLASHINFER: Final = "FlashInfer 0.6.15, include/flashinfer/sampling.cuh"
_REDUCTION: Final = "PyTorch 2.11, ATen/native/cuda/Reduce.cuh: of a reduction split among blocks, x counts outputs"
_ALL, _ROWS, _SLOTS, _NOTHING = Counts.REQUESTS, Counts.ROWS, Counts.SLOTS, Counts.NOTHING

REQUEST_KERNELS: Final = (
    RequestKernel("alloc_decode_kernel", _ALL, "before", f"{_SGLANG}mem_cache/allocator/paged.py", seen=False),
    RequestKernel("assign_req_to_token_pool", _ALL, "before", f"{_SGLANG}mem_cache/allocation.py"),
    RequestKernel(
        "assign_draft_cache_locs", _ALL, "before", "SGLang 0.4.6, srt/speculative/eagle_worker.py", seen=False
    ),
    RequestKernel("assign_draft_cache_locs_contiguous", _ALL, "before", f"{_SGLANG}speculative/eagle_worker_common.py"),
    RequestKernel("assign_extend_cache_locs", _ALL, "before", f"{_SGLANG_OPS}cache_locs.py"),
    RequestKernel("assign_extend_cache_locs_uniform", _ALL, "before", f"{_SGLANG_OPS}cache_locs.py"),
    RequestKernel("build_tree_efficient", _ALL, "before", f"{_SGL_KERNEL}eagle_utils.cu"),
    RequestKernel("VerifyTreeGreedy", _ALL, "behind", f"{_SGL_KERNEL}eagle_utils.cu"),
    RequestKernel(
        "verify_tree_greedy_kernel_triton", _ALL, "behind", f"{_SGLANG}speculative/eagle_utils.py", seen=False
    ),
    RequestKernel(
        "TreeSpeculativeSamplingTargetOnly", _ALL, "behind", f"{_SGL_KERNEL}speculative_sampling.cuh", seen=False
    ),
    RequestKernel("ChainSpeculativeSampling", _ALL, "behind", _FLASHINFER, seen=False),
    RequestKernel("fill_bonus_tokens", _ALL, "behind", f"{_SGLANG_OPS}eagle.py"),
    RequestKernel("_prepare_pos_seq_lens_kernel", _ALL, "before", f"{_VLLM}worker/gpu/input_batch.py", beside=1),
    RequestKernel("_combine_sampled_and_draft_tokens_kernel", _ALL, "before", f"{_VLLM}worker/gpu/input_batch.py"),
    RequestKernel(
        "_compute_slot_mapping_kernel", _ALL, "before", f"{_VLLM}worker/block_table.py", beside=1, seen=False
    ),
    RequestKernel("_get_num_sampled_and_rejected_kernel", _ALL, "behind", f"{_VLLM}worker/gpu/input_batch.py"),
    RequestKernel("rejection_greedy_sample_kernel", _ALL, "behind", f"{_VLLM}sample/rejection_sampler.py", seen=False),
    RequestKernel("rejection_random_sample_kernel", _ALL, "behind", f"{_VLLM}sample/rejection_sampler.py", seen=False),
    RequestKernel("(?:TopKTopP|TopK|TopP|MinP)?SamplingFromProbKernel", _ROWS, "behind", _FLASHINFER, seen=False),
    RequestKernel("reduce_kernel", _ROWS, "behind", _REDUCTION, within="::ArgMaxOps<", split=True),
    RequestKernel("create_flashinfer_kv_indices_triton", _SLOTS, "before", f"{_SGLANG}layers/attention/*_backend.py"),
    RequestKernel("clamp_position_kernel", _NOTHING, "before", f"{_SGLANG}model_executor/forward_batch_info.py"),
)
"""Each was read in the source that it names."""

_ANY: Final = re.compile(
    r"(?:void )?(?:(?:\w+|<unnamed>|\(anonymous namespace\))::)*"
    rf"(?:{'|'.join(f'({one.name})' for one in REQUEST_KERNELS)})(?=$|[<(])"
)
"""From the start of a whole name: arguments of a template or a function may hold the name of another."""


def request_kernels(names: Mapping[int, str]) -> dict[int, RequestKernel]:
    """Return the kernels that count by their string ids, of the names of a capture."""
    found = {}
    for number, name in names.items():
        match = _ANY.match(name)
        if match and match.lastindex and REQUEST_KERNELS[match.lastindex - 1].within in name:
            found[number] = REQUEST_KERNELS[match.lastindex - 1]
    return found
