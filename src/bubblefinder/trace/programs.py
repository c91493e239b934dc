"""Which libraries a capture shows at work, and which field it is from: advice is given only where its own is seen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from bubblefinder.lookup import column_of, different
from bubblefinder.trace.model import process_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.trace.model import Trace

LLM: Final = "llm"
PROGRAMS: Final = {
    "pytorch": re.compile(r"\bat::|\bc10::|\baten::|\btriton_(poi|red|per|for)_|\btorch\b|\bpt_\w+_thread"),
    "flashinfer": re.compile(r"flashinfer|\bBatch(Decode|Prefill)With(Paged|Ragged)|\bBatchMLA", re.IGNORECASE),
    "sglang": re.compile(
        r"\bsglang\b|\bsgl_|\bFutureMap\b|\bresolve_seq_lens|\bprocess_batch_result\b|\bEAGLE\w*Worker", re.IGNORECASE
    ),
    "vllm": re.compile(r"\bvllm\b", re.IGNORECASE),
    "tensorrt_llm": re.compile(r"\btensorrt_llm\b", re.IGNORECASE),
    "python": re.compile(
        r"^python[\d.]*$|\b_?Py(Eval|Object|Mem)?_\w|\bTHPVariable|\.py\b|\btorch\b|\bpt_\w+_thread|\bGIL\b"
    ),
    LLM: re.compile(
        r"attn|attention|sdpa|fmha|flash_fwd|\bmla|(?<![a-z])rope(?![a-z])|rotary|qkv|kv_?cache|paged|\bmoe|expert|lm_head|rms_?norm"
        r"|embed|tokens?(\b|_)|logit|vocab|prefill|\bdraft|^verify$|^decode$|decode[ _.]?(step|batch|forward|graph)"
        r"|flashinfer|sglang|vllm|\bllm\b|tensorrt_llm",
        re.IGNORECASE,
    ),
}  # fmt: skip
"""What the names of kernels, ranges, frames, threads and processes tell of the program: the libraries behind it; that
Python runs it; that it is a language model, whose words (prefill, token, vocabulary) mean nothing elsewhere."""

_CALLED: Final = {"trtllm": "tensorrtllm", "torch": "pytorch"}
"""What people call a program for short."""


def same_program(name: str) -> str:
    """Return what all spellings of a program's name have in common: TensorRT-LLM, tensorrt_llm and trtllm are one."""
    letters = re.sub(r"[^a-z0-9]", "", name.casefold())
    return _CALLED.get(letters, letters)


def find_programs(trace: Trace) -> tuple[str, ...]:
    """Return what a capture shows at work, as named in `PROGRAMS`."""
    left = dict(PROGRAMS)
    for name in _names(trace):
        for program in [program for program, sign in left.items() if sign.search(name)]:
            del left[program]
    return tuple(program for program in PROGRAMS if program not in left)


def is_llm(trace: Trace) -> bool:
    """Return whether any name of a capture is one of a language model's program."""
    return any(map(PROGRAMS[LLM].search, _names(trace)))


def _names(trace: Trace) -> Iterator[str]:
    yield from trace.names.values()
    yield from (text for text in trace.nvtx["text"].unique() if text is not None)
    yield from (symbol for symbol in trace.frames["symbol"].unique() if symbol is not None)
    yield from _threads_at_work(trace)
    yield from (process.name for process in trace.info.processes if process.name)


def _threads_at_work(trace: Trace) -> Iterator[str]:
    """Yield the names of threads of processes that use CUDA: an export names all threads of the machine."""
    at_work = {
        int(process) for frame in (trace.operations, trace.calls) for process in different(column_of(frame, "process"))
    }
    yield from (name for thread, name in trace.thread_names.items() if process_of(thread) in at_work)
