"""Continuous batching of transformers, synchronous or asynchronous: the same requests, the same random weights.

usage: python -m workloads.batching {sync,async} [--steps 40] [--result FILE]

Synchronous batching prepares a batch, runs it, waits, and reads the tokens back. Asynchronous batching prepares the
next batch while the GPU runs this one, in a second set of buffers. Both replay one CUDA graph a step. All rounds decode
the same tokens; the last is the one inside the profiler's range.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForCausalLM, ContinuousBatchingConfig, GenerationConfig, LlamaConfig

from workloads.decode import arguments, mark, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

REQUESTS, PROMPT = 8, 32
WARM_STEPS, SPAN_STEPS = 60, 200
ROUNDS = 3
"""Untraced ones, before that which is traced."""
BLOCK, BLOCKS = 256, 24
SHAPE = {
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}
PATIENCE_S = 120


class Watched:
    """A manager of transformers whose loop is watched: when each step began, and which are traced."""

    def __init__(self, manager: Any) -> None:
        """Put a mark around each turn of the loop, which runs on a thread of the manager's."""
        self.manager = manager
        self.edges: dict[int, float] = {}
        self.traced: range | None = None
        self._turn = manager._generation_loop_body
        manager._generation_loop_body = self._marked

    def _marked(self, processor: Any, bootstrapping: bool) -> bool:
        step = self.manager.current_batch
        if self.traced and step == self.traced.start:
            torch.cuda.profiler.start()
        if self.traced and step == self.traced.stop:
            torch.cuda.profiler.stop()
            self.traced = None
        self.edges.setdefault(step, time.perf_counter())
        with mark("decode_step"):
            return bool(self._turn(processor, bootstrapping))

    def round(self, prompts: Sequence[Sequence[int]], traced_steps: int = 0) -> float:
        """Decode all prompts and return the mean time of a step in ms, over steps that decode and nothing else."""
        before = max(self.edges, default=0)
        first = before + WARM_STEPS
        self.traced = range(first, first + traced_steps) if traced_steps else None
        self.manager.add_requests(inputs=prompts, max_new_tokens=WARM_STEPS + SPAN_STEPS + PROMPT)
        left, until = len(prompts), time.perf_counter() + PATIENCE_S
        while left:
            result = self.manager.get_result(timeout=1)
            if time.perf_counter() > until or not self.manager.is_running():
                raise SystemExit("the batches were not decoded")
            left -= bool(result and result.is_finished())
        return 1e3 * (self.edges[first + SPAN_STEPS] - self.edges[first]) / SPAN_STEPS


def start(device: str, shape: dict[str, int], *, overlapped: bool) -> Watched:
    """Load random weights and start a manager whose steps all have one shape, so that one graph serves them."""
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(
            LlamaConfig(**shape), dtype=torch.bfloat16, attn_implementation="paged|sdpa"
        )
    manager = model.init_continuous_batching(
        generation_config=GenerationConfig(do_sample=False, eos_token_id=-1),
        continuous_batching_config=ContinuousBatchingConfig(
            block_size=BLOCK,
            num_blocks=BLOCKS,
            max_batch_tokens=BLOCK,
            max_requests_per_batch=REQUESTS,
            allow_block_sharing=False,
            use_async_batching=overlapped,
            use_cuda_graph=True,
            q_padding_interval_size=2 * REQUESTS,
            kv_padding_interval_size=BLOCK * BLOCKS,
        ),
    )
    watched = Watched(manager)
    manager.start()
    return watched


def main() -> None:
    """Decode as the command line says."""
    asked = arguments(("sync", "async"), __doc__)
    torch.manual_seed(0)
    watched = start("cuda", SHAPE, overlapped=asked.variant == "async")
    prompts = torch.randint(100, SHAPE["vocab_size"], (REQUESTS, PROMPT)).tolist()
    untraced = [watched.round(prompts) for _ in range(ROUNDS)]
    watched.round(prompts, asked.steps)
    watched.manager.stop(block=True, timeout=30)
    print(untraced)
    tell(asked, sorted(untraced)[ROUNDS // 2])


if __name__ == "__main__":
    main()
