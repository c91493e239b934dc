"""What is changed in SGLang 0.5.17 and FlashInfer 0.6.15: NEXTN for grouped heads, and no blocking read while decoding.

The second is on while the file exists that `WORKLOADS_SWITCH` names, so that one process can be measured with it and
without: two processes of one program differ by more than a read costs. It holds for one batch whose every step accepts
`ACCEPTED` tokens (`SGLANG_SIMULATE_ACC_LEN`): the lengths are then known on the host before the GPU has them.
"""

from __future__ import annotations

import inspect
import os
import textwrap
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

ACCEPTED = 3


@dataclass(slots=True)
class Known:
    """What the scheduler's host knows without asking the GPU.

    Attributes:
        decoding: a batch has decoded; what is planned for graph captures before has made-up lengths.
        requests: the ids of the batch that `lengths` is about.
        lengths: tokens of each request, as a tensor of the host.
        plan: tokens a request to verify and lengths with them, of the plan that is being made; else null.
    """

    decoding: bool = False
    requests: tuple[str, ...] = ()
    lengths: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    plan: tuple[int, torch.Tensor] | None = None

    def reads_nothing(self) -> bool:
        """Whether the blocking reads are to be left out."""
        return self.decoding and Path(os.environ.get("WORKLOADS_SWITCH", "")).is_file()


known = Known()


def offsets(lengths: torch.Tensor) -> torch.Tensor:
    """Return the int32 offsets of ragged rows: [n] lengths to [n + 1] offsets."""
    ends = torch.zeros(len(lengths) + 1, dtype=torch.int32)
    ends[1:] = torch.cumsum(lengths, dim=0)
    return ends


def rewritten(function: Callable[..., Any], old: str, new: str, **names: object) -> Callable[..., Any]:
    """Return a function with one piece of its source replaced, and `names` known to it.

    Raises:
        SystemExit: the piece isn't there just once: this is another version.
    """
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise SystemExit(f"{function.__qualname__} isn't that of the version this was written for")
    space: dict[str, Any] = {}
    function.__globals__.update(names)
    exec(compile(source.replace(old, new), inspect.getfile(function), "exec"), function.__globals__, space)  # noqa: S102
    return space[function.__name__]


def allow_grouped_heads() -> None:
    """Derive the shapes of a NEXTN layer as its model's: SGLang takes all of this family for latent attention."""
    from sglang.srt.configs.model_config import ModelConfig

    derive = ModelConfig._derive_model_shapes

    def shapes(config: Any) -> None:
        if getattr(config.hf_config, "kv_lora_rank", None):
            derive(config)
            return
        named, config.hf_config.architectures = config.hf_config.architectures, ["BailingMoeV2ForCausalLM"]
        derive(config)
        config.hf_config.architectures = named

    ModelConfig._derive_model_shapes = shapes


def know_lengths() -> None:
    """Count the lengths on the host instead of reading them after every verify."""
    from sglang.srt.managers.overlap_utils import FutureMap

    resolve = FutureMap.resolve_seq_lens_cpu

    @wraps(resolve)
    def resolve_seq_lens_cpu(futures: Any, batch: Any) -> None:
        known.decoding = True
        requests = tuple(request.rid for request in batch.reqs)
        pending = batch.spec_info is not None and batch.spec_info.future_indices is not None
        if pending and requests == known.requests and known.reads_nothing():
            needed, futures.needs_cpu_seq_lens = futures.needs_cpu_seq_lens, False
            resolve(futures, batch)
            futures.needs_cpu_seq_lens = needed
            batch.seq_lens_cpu = known.lengths + ACCEPTED
            batch.seq_lens_sum = int(batch.seq_lens_cpu.sum())
        else:
            resolve(futures, batch)
        if pending and batch.seq_lens_cpu is not None:
            known.requests, known.lengths = requests, batch.seq_lens_cpu.clone()

    FutureMap.resolve_seq_lens_cpu = resolve_seq_lens_cpu


def draft_offsets(draft: Any, batch: Any, rows: int) -> torch.Tensor:
    """Return the offsets of each draft step on the host, which the GPU has too: [steps, rows + 1]."""
    if known.reads_nothing() and draft.topk == 1 and batch.seq_lens_cpu is not None:
        steps = range(1, draft.kv_indptr.shape[0] + 1)
        return torch.stack([offsets(batch.seq_lens_cpu[:rows] + step) for step in steps])
    return draft.kv_indptr[:, : rows + 1].cpu()


def know_draft_offsets() -> None:
    """Make the draft's offsets on the host instead of reading them back."""
    from sglang.srt.layers.attention.flashinfer_backend import FlashInferMultiStepDraftBackend

    FlashInferMultiStepDraftBackend.common_template = rewritten(
        FlashInferMultiStepDraftBackend.common_template,
        "self.kv_indptr[:, : bs + 1].cpu()",
        "draft_offsets(self, forward_batch, bs)",
        draft_offsets=draft_offsets,
    )


def plan_on_host() -> None:
    """Give FlashInfer's plan() of verify its arrays on the host, where it wants to read them."""
    from flashinfer.prefill import BatchPrefillWithPagedKVCacheWrapper
    from sglang.srt.layers.attention.flashinfer_backend import FlashInferIndicesUpdaterPrefill

    prepare = FlashInferIndicesUpdaterPrefill.call_begin_forward
    signature = inspect.signature(prepare)
    begin = BatchPrefillWithPagedKVCacheWrapper.begin_forward

    @wraps(prepare)
    def call_begin_forward(updater: Any, *given: Any, **named: Any) -> None:
        asked = signature.bind(updater, *given, **named).arguments
        lengths, tokens = asked.get("seq_lens_cpu"), getattr(asked["spec_info"], "draft_token_num", None)
        if lengths is not None and tokens is not None and known.reads_nothing():
            known.plan = (tokens, lengths[: len(asked["seq_lens"])] + tokens)
        prepare(updater, *given, **named)
        known.plan = None

    @wraps(begin)
    def begin_forward(wrapper: Any, queries: Any, kv: Any, indices: Any, last: Any, *given: Any, **named: Any) -> None:
        if known.plan is not None:
            tokens, lengths = known.plan
            queries, kv = offsets(torch.full_like(lengths, tokens)), offsets(lengths)
            last = torch.ones(len(lengths), dtype=torch.int32)
        begin(wrapper, queries, kv, indices, last, *given, **named)

    FlashInferIndicesUpdaterPrefill.call_begin_forward = call_begin_forward
    BatchPrefillWithPagedKVCacheWrapper.begin_forward = begin_forward


def pack_from_host() -> None:
    """Pack the mask behind offsets of the host, whose size needs no read; those of the GPU as before."""
    import flashinfer.prefill
    from flashinfer.quantization.packbits import get_quantization_module

    pack = flashinfer.prefill.segment_packbits

    def segment_packbits(bits: torch.Tensor, rows: torch.Tensor, bitorder: str = "big") -> tuple[Any, Any]:
        if rows.is_cuda:
            return pack(bits, rows, bitorder)
        packed = offsets((rows.diff() + 7) // 8)
        out = torch.empty(int(packed[-1]), dtype=torch.uint8, device=bits.device)
        rows, packed = (ends.to(bits.device, torch.int32, non_blocking=True) for ends in (rows, packed))
        get_quantization_module().segment_packbits(bits, rows, packed, bitorder, out)
        return out, packed

    flashinfer.prefill.segment_packbits = segment_packbits


def run_scheduler(*arguments: Any) -> None:
    """Run SGLang's scheduler with all of this, in the process that was started for it."""
    from sglang.srt.managers.scheduler import run_scheduler_process

    allow_grouped_heads()
    know_lengths()
    know_draft_offsets()
    plan_on_host()
    pack_from_host()
    run_scheduler_process(*arguments)
