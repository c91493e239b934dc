"""How each serving engine opens the profiler's range, and how to have it name its own work.

Sources: SGLang 0.5.17 (seen to work under Nsight Systems 2025.3), vLLM's and TensorRT-LLM's own profiling pages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Engine:
    """A program that decodes.

    Attributes:
        name: what to call it on the command line.
        packs: the rule packs whose functions name its work; all where none is known.
        sign: what its command line looks like.
        hints: how the range is opened, and what else to know, one sentence each.
    """

    name: str
    packs: tuple[str, ...]
    sign: re.Pattern[str]
    hints: tuple[str, ...]


ENGINES: Final = (
    Engine(
        "sglang",
        ("sglang", "flashinfer"),
        re.compile(r"\bsglang\b"),
        (
            'SGLang opens the range on POST /start_profile {"activities": ["CUDA_PROFILER"]}; /stop_profile closes it.',
            'In a program: engine.start_profile(activities=["CUDA_PROFILER"]). Only the first rank opens it.',
            "SGLANG_ENABLE_NVTX_SCHEDULER=1 marks each step (needs the nvtx package).",
        ),
    ),
    Engine(
        "vllm",
        ("vllm", "flashinfer"),
        re.compile(r"\bvllm\b"),
        (
            "vLLM needs --profiler-config.profiler cuda; POST /start_profile or bench --profile opens the range.",
            "VLLM_WORKER_MULTIPROC_METHOD=spawn lets its workers be traced.",
            "VLLM_NVTX_SCOPES_FOR_PROFILING=1 names what its scheduler does; --mode names the parts of a step as well.",
        ),
    ),
    Engine(
        "tensorrt_llm",
        ("tensorrt-llm",),
        re.compile(r"\btrtllm\b|tensorrt_llm"),
        (
            "TensorRT-LLM opens the range from iteration 100 to 150 with TLLM_PROFILE_START_STOP=100-150.",
            "TLLM_LLMAPI_ENABLE_NVTX=1 and TLLM_PROFILE_RECORD_GC=1 name more of the host's work.",
        ),
    ),
    Engine(
        "pytorch",
        (),
        re.compile(r"(?!)"),
        (
            "Open the range after the warm-up with torch.cuda.profiler.start(), and close it with stop().",
            "Or leave the program alone and record by time with --delay.",
        ),
    ),
)


def engine_of(command: Sequence[str], named: str | None = None) -> Engine:
    """Return the engine of a name, else the one that a command line shows, else plain PyTorch.

    Raises:
        UsageError: there is no engine of that name.
    """
    if named is not None:
        known = {engine.name: engine for engine in ENGINES}
        if named not in known:
            raise UsageError(f"--engine {named!r} is not a known engine", hint="use " + ", ".join(known))
        return known[named]
    text = " ".join(command)
    return next((engine for engine in ENGINES if engine.sign.search(text)), ENGINES[-1])
