"""SGLang decoding with the shapes of Ling or Qwen3 and dummy weights: with drafts or without, overlapped or not.

usage: python -m workloads.sglang_decode VARIANT [--steps 40] [--result FILE]

Written for SGLang 0.5.17 with FlashInfer 0.6.15. Each is measured before it is traced and again behind that. `nextn`
and `patched` are measured with the blocking reads and without them by turns; `nextn` is traced with them, `patched`
without. No weights and no tokenizer are needed, and every step with drafts accepts three tokens.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sglang.srt.entrypoints import engine as entry

from workloads.decode import arguments, tell
from workloads.sglang_patches import ACCEPTED, allow_grouped_heads, run_scheduler

SHAPE = {
    "architectures": ["BailingMoeV2ForCausalLM"],
    "model_type": "bailing_moe",
    "auto_map": {"AutoConfig": "ling.LingConfig"},
    "hidden_size": 4096,
    "intermediate_size": 9216,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 600_000,
    "rope_scaling": None,
    "partial_rotary_factor": 0.5,
    "rotary_dim": 64,
    "vocab_size": 157_184,
    "max_position_embeddings": 32768,
    "num_experts": 64,
    "num_experts_per_tok": 8,
    "num_shared_experts": 1,
    "moe_intermediate_size": 1024,
    "moe_shared_expert_intermediate_size": 1024,
    "first_k_dense_replace": 1,
    "n_group": 8,
    "topk_group": 4,
    "norm_topk_prob": True,
    "norm_head": False,
    "score_function": "sigmoid",
    "router_dtype": "fp32",
    "moe_router_enable_expert_bias": True,
    "routed_scaling_factor": 2.5,
    "use_qk_norm": True,
    "use_bias": False,
    "use_qkv_bias": False,
    "use_rmsnorm": True,
    "embedding_dropout": 0.0,
    "attention_dropout": 0.0,
    "output_dropout": 0.0,
    "tie_word_embeddings": False,
    "num_nextn_predict_layers": 1,
    "torch_dtype": "bfloat16",
    "eos_token_id": 156_892,
    "pad_token_id": 156_892,
    "bos_token_id": 1,
}
HYBRID = {name: value for name, value in SHAPE.items() if name != "auto_map"} | {
    "architectures": ["BailingMoeV2_5ForCausalLM"],
    "model_type": "bailing_hybrid",
    "layer_group_size": 8,
    "group_norm_size": 4,
    "linear_silu": False,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
}
"""Linear attention in all layers but each eighth, which has latent attention."""
DENSE = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
BLOCK = DENSE | {
    "architectures": ["Qwen3DSparkModel"],
    "num_hidden_layers": 4,
    "num_target_layers": 32,
    "block_size": 4,
    "target_layer_ids": [1, 10, 19, 28],
    "mask_token_id": 151_669,
    "markov_rank": 256,
    "markov_head_type": "vanilla",
    "enable_confidence_head": False,
}
"""The draft of DSpark, which makes four tokens in one pass."""
CONFIG = """
from transformers import PretrainedConfig


class LingConfig(PretrainedConfig):
    model_type = "bailing_moe"

    def __init__(self, **given):
        super().__init__(**given)
        for name, value in given.items():
            if not hasattr(self, name):
                setattr(self, name, value)
        if not getattr(self, "rope_parameters", None):
            part = given.get("partial_rotary_factor", 1.0)
            theta = given.get("rope_theta", 600_000)
            self.rope_parameters = {"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": part}
"""
NEXTN = {
    "speculative_algorithm": "NEXTN",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
}
FLASHINFER, TRITON = {"attention_backend": "flashinfer"}, {"attention_backend": "triton"}
FLASH_ATTENTION_3 = {"attention_backend": "fa3"}
DSPARK = {"speculative_algorithm": "DSPARK", "speculative_dspark_block_size": 4}
NGRAM = {"speculative_algorithm": "NGRAM", "speculative_num_draft_tokens": 4, "speculative_ngram_max_bfs_breadth": 1}


@dataclass(frozen=True, slots=True)
class Variant:
    """What is run.

    Attributes:
        switches: of the engine.
        shape: the model's config.
        requests: how many are sent together.
        arrives: another prompt comes while the first is decoded.
    """

    switches: dict[str, Any]
    shape: dict[str, Any] = field(default_factory=lambda: SHAPE)
    requests: int = 1
    arrives: bool = False


VARIANTS: dict[str, Variant] = {
    "nextn": Variant(FLASHINFER | NEXTN),
    "triton": Variant(TRITON | NEXTN),
    "plain": Variant(FLASHINFER),
    "overlap_off": Variant(FLASHINFER | NEXTN | {"disable_overlap_schedule": True}),
    "patched": Variant(FLASHINFER | NEXTN),
    "nextn_8": Variant(FLASHINFER | NEXTN, requests=8),
    "arrive": Variant(FLASHINFER | NEXTN, arrives=True),
    "hybrid_flashinfer": Variant(FLASHINFER | NEXTN, HYBRID),
    "fa3_nextn": Variant(FLASH_ATTENTION_3 | NEXTN, SHAPE | {"num_hidden_layers": 24}),
    "dspark": Variant(FLASHINFER | DSPARK, DENSE),
    "ngram": Variant(FLASHINFER | NGRAM, DENSE),
}
PROMPT, LATE_PROMPT, FEW = 512, 1500, 3
LATE_S = 0.1
"""Some ten steps, so that the other prompt comes in the midst of the traced ones."""
WARM = 440
ROUNDS, AFTER = 5, 5
"""Untraced ones of each kind before that which is traced, and of its kind behind it, where the range has been closed.

A step is the difference of a long and a short answer.
"""


class Engine(entry.Engine):
    """An engine whose scheduler runs with our changes; `sglang.Engine` only imports its class late, and has none."""

    run_scheduler_process_func = staticmethod(run_scheduler)


def write_shape(folder: Path, shape: dict[str, Any]) -> Path:
    """Write a model's config, and the class for it, into a folder of its own."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(shape))
    (folder / "ling.py").write_text(CONFIG)
    return folder


def engine(variant: Variant, folder: Path) -> Engine:
    """Start the engine with the switches of a variant."""
    switches = dict(variant.switches)
    if variant.switches.get("speculative_algorithm") == "DSPARK":
        switches["speculative_draft_model_path"] = str(write_shape(folder / "draft", BLOCK))
    allow_grouped_heads()
    return Engine(
        model_path=str(write_shape(folder / "model", variant.shape)),
        load_format="dummy",
        skip_tokenizer_init=True,
        trust_remote_code=True,
        context_length=4096,
        mem_fraction_static=0.7,
        max_running_requests=8,
        cuda_graph_max_bs_decode=8,
        disable_prefill_cuda_graph=True,
        disable_radix_cache=True,
        log_level="warning",
        watchdog_timeout=600,
        **switches,
    )


def prompt(tokens: int, seed: int) -> list[int]:
    """Return so many tokens of a made-up text."""
    return random.Random(seed).choices(range(100, 150_000), k=tokens)


def answer(running: Engine, tokens: int, requests: int = 1) -> tuple[float, int]:
    """Decode so many tokens behind each prompt; return the seconds that it took, and the steps of the model."""
    prompts = [prompt(PROMPT, seed) for seed in range(requests)]
    sampling = {"temperature": 0, "ignore_eos": True, "max_new_tokens": tokens}
    start = time.perf_counter()
    told = running.generate(input_ids=prompts, sampling_params=sampling)[0]["meta_info"]
    return time.perf_counter() - start, told.get("spec_verify_ct") or told["completion_tokens"]


def answer_two(running: Engine, tokens: int) -> None:
    """Decode so many tokens behind one prompt; another comes meanwhile, of which one token is wanted."""

    async def late() -> None:
        await asyncio.sleep(LATE_S)
        await running.async_generate(input_ids=prompt(LATE_PROMPT, 1), sampling_params={"max_new_tokens": 1})

    async def both() -> None:
        sampling = {"temperature": 0, "ignore_eos": True, "max_new_tokens": tokens}
        first = running.async_generate(input_ids=prompt(PROMPT, 0), sampling_params=sampling)
        await asyncio.gather(first, late())

    running.loop.run_until_complete(both())


def step_ms(running: Engine, tokens: int, requests: int) -> float:
    """Return the untraced time of a step, over the tokens that are traced afterwards."""
    (short, few), (long, many) = (answer(running, count, requests) for count in (ACCEPTED * FEW, tokens))
    return 1e3 * (long - short) / (many - few)


def without_reads(running: Engine, tokens: int, switch: Path) -> float:
    """Return the untraced time of a step with the blocking reads taken out, and put them back."""
    switch.touch()
    answer(running, WARM)
    step = step_ms(running, tokens, 1)
    switch.unlink()
    answer(running, WARM)
    return step


def measured(running: Engine, asked: str, tokens: int, switch: Path) -> tuple[list[float], list[float]]:
    """Return the untraced times of a step as the variant has it, and without the reads where they can be taken out.

    The two take turns, since the host's speed drifts by some percent within a minute.
    """
    switch.unlink(missing_ok=True)
    requests = VARIANTS[asked].requests
    answer(running, WARM, requests)
    rounds, reads_nothing = [], []
    for _ in range(ROUNDS):
        rounds.append(step_ms(running, tokens, requests))
        if asked in {"nextn", "patched"}:
            reads_nothing.append(without_reads(running, tokens, switch))
    if asked == "patched":
        switch.touch()
        answer(running, WARM)
    return rounds, reads_nothing


def traced(running: Engine, variant: Variant, tokens: int) -> None:
    """Decode inside the profiler's range."""
    if variant.arrives:
        answer_two(running, tokens)  # compiles what its prompt needs
    running.start_profile(activities=["CUDA_PROFILER"])
    if variant.arrives:
        answer_two(running, tokens)
    else:
        answer(running, tokens, variant.requests)
    running.stop_profile()


def main() -> None:
    """Run the variant that the command line names."""
    asked = arguments(VARIANTS, __doc__)
    variant = VARIANTS[asked.variant]
    drafts = variant.switches.get("speculative_algorithm")
    tokens = asked.steps * (ACCEPTED if drafts else 1)
    with tempfile.TemporaryDirectory() as folder:
        switch = Path(folder, "reads_nothing")
        os.environ["WORKLOADS_SWITCH"] = str(switch)
        os.environ["SGLANG_SIMULATE_ACC_LEN"] = str(ACCEPTED)
        running = engine(variant, Path(folder))
        rounds, reads_nothing = measured(running, asked.variant, tokens, switch)
        traced(running, variant, tokens)
        after = [step_ms(running, tokens, variant.requests) for _ in range(AFTER)]
        both = {"with_reads_ms": rounds, "without_reads_ms": reads_nothing} if reads_nothing else {"rounds_ms": rounds}
        before = reads_nothing if asked.variant == "patched" else rounds
        tell(asked, statistics.median(before + after), **both, after_ms=after)
        running.shutdown()


if __name__ == "__main__":
    main()
