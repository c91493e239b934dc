"""SGLang decoding one request with the shape of Ling and dummy weights: with NEXTN or without, overlapped or not.

usage: python -m workloads.sglang_decode {nextn,triton,plain,overlap_off,patched} [--steps 40] [--result FILE]

Written for SGLang 0.5.17 with FlashInfer 0.6.15. `nextn` and `patched` are measured with the blocking reads and without
them by turns, in one process; `nextn` is traced with them, `patched` without. No weights and no tokenizer are needed,
and every step of NEXTN accepts three tokens.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
import time
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
VARIANTS: dict[str, dict[str, Any]] = {
    "nextn": {"attention_backend": "flashinfer", **NEXTN},
    "triton": {"attention_backend": "triton", **NEXTN},
    "plain": {"attention_backend": "flashinfer"},
    "overlap_off": {"attention_backend": "flashinfer", "disable_overlap_schedule": True, **NEXTN},
    "patched": {"attention_backend": "flashinfer", **NEXTN},
}
PROMPT, FEW = 512, 3
WARM = 440
ROUNDS = 5
"""Untraced ones of each kind, before that which is traced; the step is the difference of a long and a short answer."""


class Engine(entry.Engine):
    """An engine whose scheduler runs with our changes; `sglang.Engine` only imports its class late, and has none."""

    run_scheduler_process_func = staticmethod(run_scheduler)


def engine(variant: str, folder: Path) -> Engine:
    """Start the engine with the switches of a variant."""
    (folder / "config.json").write_text(json.dumps(SHAPE))
    (folder / "ling.py").write_text(CONFIG)
    allow_grouped_heads()
    return Engine(
        model_path=str(folder),
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
        **VARIANTS[variant],
    )


def answer(running: Engine, tokens: int) -> tuple[float, int]:
    """Decode so many tokens behind one prompt; return the seconds that it took, and the steps of the model."""
    prompt = random.Random(0).choices(range(100, 150_000), k=PROMPT)
    sampling = {"temperature": 0, "ignore_eos": True, "max_new_tokens": tokens}
    start = time.perf_counter()
    told = running.generate(input_ids=[prompt], sampling_params=sampling)[0]["meta_info"]
    return time.perf_counter() - start, told.get("spec_verify_ct") or told["completion_tokens"]


def step_ms(running: Engine, tokens: int) -> float:
    """Return the untraced time of a step, over the tokens that are traced afterwards."""
    (short, few), (long, many) = answer(running, ACCEPTED * FEW), answer(running, tokens)
    return 1e3 * (long - short) / (many - few)


def without_reads(running: Engine, tokens: int, switch: Path) -> float:
    """Return the untraced time of a step with the blocking reads taken out, and put them back."""
    switch.touch()
    answer(running, WARM)
    step = step_ms(running, tokens)
    switch.unlink()
    answer(running, WARM)
    return step


def measured(running: Engine, variant: str, tokens: int, switch: Path) -> dict[str, Any]:
    """Return the untraced time of a step as the variant has it, and without the reads where they can be taken out.

    The two take turns, since the host's speed drifts by some percent within a minute.
    """
    switch.unlink(missing_ok=True)
    answer(running, WARM)
    rounds, reads_nothing = [], []
    for _ in range(ROUNDS):
        rounds.append(step_ms(running, tokens))
        if variant in {"nextn", "patched"}:
            reads_nothing.append(without_reads(running, tokens, switch))
    told = {"with_reads_ms": rounds, "without_reads_ms": reads_nothing} if reads_nothing else {"rounds_ms": rounds}
    if variant == "patched":
        switch.touch()
        answer(running, WARM)
    return {"step_ms": statistics.median(reads_nothing if variant == "patched" else rounds), **told}


def main() -> None:
    """Run the variant that the command line names."""
    asked = arguments(VARIANTS, __doc__)
    tokens = asked.steps * (1 if asked.variant == "plain" else ACCEPTED)
    with tempfile.TemporaryDirectory() as folder:
        switch = Path(folder, "reads_nothing")
        os.environ["WORKLOADS_SWITCH"] = str(switch)
        os.environ["SGLANG_SIMULATE_ACC_LEN"] = str(ACCEPTED)
        running = engine(asked.variant, Path(folder))
        tell(asked, **measured(running, asked.variant, tokens, switch))
        running.start_profile(activities=["CUDA_PROFILER"])
        answer(running, tokens)
        running.stop_profile()
        running.shutdown()


if __name__ == "__main__":
    main()
