"""`generate` of transformers, as most people call it: random weights, one request, greedy.

usage: python -m workloads.generate {dynamic,static,assisted} [--steps 24] [--result FILE]

`dynamic` runs kernel by kernel; `static` has a cache of fixed size, for which transformers compiles the model into one
CUDA graph a step; `assisted` drafts four tokens with a model of two layers, of which random weights accept hardly any.
A step is a token. All but the traced call are timed, before it and behind it, as the difference of a long and a short
one, so that the prompt doesn't count.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from workloads.decode import arguments, tell

PROMPT = 64
SHORT, LONG = 24, 104
ROUNDS = 4
"""Untraced ones on each side of that which is traced."""
SHAPE = {
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 16,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}
DRAFT = {"num_hidden_layers": 2}
DRAFTED = {
    "num_assistant_tokens": 4,
    "num_assistant_tokens_schedule": "constant",
    "assistant_confidence_threshold": 0.0,
}


def model(**other: int) -> Any:
    """Return a model of random weights on the GPU."""
    with torch.device("cuda"):
        made = AutoModelForCausalLM.from_config(LlamaConfig(**SHAPE | other), dtype=torch.bfloat16)
    return made.eval()


def options(variant: str) -> dict[str, Any]:
    """Return what `generate` is told besides."""
    if variant == "static":
        return {"cache_implementation": "static"}
    if variant == "dynamic":
        return {}
    draft = model(**DRAFT)
    draft.generation_config.update(**DRAFTED)
    return {"assistant_model": draft}


class Generation:
    """One prompt, decoded again and again."""

    def __init__(self, variant: str) -> None:
        """Make the models and the prompt."""
        self._model = model()
        self._prompt = torch.randint(100, SHAPE["vocab_size"], (1, PROMPT), device="cuda")
        self._options = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0, **options(variant)}

    @torch.no_grad()
    def run(self, tokens: int) -> float:
        """Decode so many tokens and return how long that took, in s."""
        torch.cuda.synchronize()
        begun = time.perf_counter()
        told = {"max_new_tokens": tokens, "min_new_tokens": tokens, "attention_mask": torch.ones_like(self._prompt)}
        self._model.generate(self._prompt, **told, **self._options)
        torch.cuda.synchronize()
        return time.perf_counter() - begun

    def step_ms(self) -> float:
        """Return how long a token takes."""
        return 1e3 * (self.run(LONG) - self.run(SHORT)) / (LONG - SHORT)


def main() -> None:
    """Decode as the command line says."""
    asked = arguments(("dynamic", "static", "assisted"), __doc__, steps=24)
    torch.manual_seed(0)
    generation = Generation(asked.variant)
    generation.step_ms()
    before = [generation.step_ms() for _ in range(ROUNDS)]
    torch.cuda.profiler.start()
    generation.run(asked.steps)
    torch.cuda.profiler.stop()
    behind = [generation.step_ms() for _ in range(ROUNDS)]
    tell(asked, median(before + behind), before_ms=before, behind_ms=behind)


if __name__ == "__main__":
    main()
