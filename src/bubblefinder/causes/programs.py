"""Which libraries a capture shows at work: advice about a library is given only where it is seen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.trace.model import Trace

PROGRAMS: Final = {
    "pytorch": re.compile(r"\bat::|\bc10::|\baten::|\btriton_(poi|red|per|for)_|\btorch\b|\bpt_\w+_thread"),
    "flashinfer": re.compile(r"flashinfer|\bBatch(Decode|Prefill)With(Paged|Ragged)|\bBatchMLA", re.IGNORECASE),
    "sglang": re.compile(r"\bsglang\b|\bsgl_|\bFutureMap\b", re.IGNORECASE),
    "vllm": re.compile(r"\bvllm\b", re.IGNORECASE),
    "tensorrt_llm": re.compile(r"\btensorrt_llm\b", re.IGNORECASE),
}
"""What the names of kernels, ranges, frames and threads tell of the libraries behind them."""


def find_programs(trace: Trace) -> tuple[str, ...]:
    """Return the libraries that a capture shows at work, as named in `PROGRAMS`."""
    left = dict(PROGRAMS)
    for name in _names(trace):
        for program in [program for program, sign in left.items() if sign.search(name)]:
            del left[program]
    return tuple(program for program in PROGRAMS if program not in left)


def _names(trace: Trace) -> Iterator[str]:
    yield from trace.names.values()
    yield from trace.nvtx["text"].drop_nulls().unique()
    yield from trace.frames["symbol"].drop_nulls().unique()
    yield from trace.thread_names.values()
