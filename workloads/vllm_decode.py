"""vLLM decoding one request with dummy weights, as it comes, in pieces, or without asynchronous scheduling.

usage: python -m workloads.vllm_decode {full,piecewise,sync} [--steps 40] [--result FILE]

The engine runs in a process of its own; `start_profile` opens the profiler's range there. The model is dense and has
the shape of Qwen3-1.7B; no weights and no tokenizer are needed. Every round decodes the same tokens.
"""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from vllm import LLM, SamplingParams

from workloads.decode import arguments, tell

SHAPE = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
VARIANTS: dict[str, dict[str, Any]] = {
    "full": {},
    "piecewise": {"compilation_config": {"cudagraph_mode": "PIECEWISE"}},
    "sync": {"async_scheduling": False},
}
PROMPT, FEW = 512, 8
ROUNDS = 5
"""Untraced ones, before that which is traced; the step is the difference of a long and a short answer."""


def engine(variant: str, folder: Path) -> LLM:
    """Start the engine with the switches of a variant."""
    (folder / "config.json").write_text(json.dumps(SHAPE))
    return LLM(
        model=str(folder),
        load_format="dummy",
        skip_tokenizer_init=True,
        max_model_len=4096,
        max_num_seqs=8,
        max_num_batched_tokens=4096,
        gpu_memory_utilization=0.4,
        enable_prefix_caching=False,
        profiler_config={"profiler": "cuda"},
        **VARIANTS[variant],
    )


def answer(llm: LLM, tokens: int) -> float:
    """Decode so many tokens behind one prompt, and return the seconds that it took."""
    prompt = {"prompt_token_ids": random.Random(0).choices(range(100, 150_000), k=PROMPT)}
    sampling = SamplingParams(temperature=0, ignore_eos=True, max_tokens=tokens, detokenize=False)
    start = time.perf_counter()
    llm.generate([prompt], sampling, use_tqdm=False)
    return time.perf_counter() - start


def main() -> None:
    """Run the variant that the command line names."""
    asked = arguments(VARIANTS, __doc__)
    with tempfile.TemporaryDirectory() as folder:
        llm = engine(asked.variant, Path(folder))
        answer(llm, 4 * FEW)
        spans = [answer(llm, asked.steps + FEW) - answer(llm, FEW) for _ in range(ROUNDS)]
        tell(asked, 1e3 * statistics.median(spans) / asked.steps)
        llm.start_profile()
        answer(llm, asked.steps)
        llm.stop_profile()


if __name__ == "__main__":
    main()
