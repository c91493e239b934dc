"""FlashInfer's `plan()` alone, once a step, with its lengths on the GPU or on the host.

usage: python -m workloads.plan {device,host} [--steps 40] [--result FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import flashinfer
import torch

PAGE, PAGES, HEADS, KV_HEADS, HEAD = 16, 4096, 32, 8, 128
WORKSPACE = 128 << 20
WARM_STEPS = 20


def step(wrapper: Any, where: str, lengths: torch.Tensor) -> None:
    """Plan one decode step of one request."""
    with torch.cuda.nvtx.range("decode_step"):
        indptr = torch.tensor([0, int(lengths.numel())], dtype=torch.int32)
        indices = torch.arange(lengths.numel(), dtype=torch.int32, device="cuda")
        last = torch.full((1,), PAGE, dtype=torch.int32)
        if where == "device":
            indptr, last = indptr.cuda(), last.cuda()
        with torch.cuda.nvtx.range("plan"):
            wrapper.plan(indptr, indices, last, HEADS, KV_HEADS, HEAD, PAGE)


def timed(wrapper: Any, where: str, steps: int) -> float:
    """Return the mean time of a step in ms."""
    lengths = torch.ones(PAGES // 8, dtype=torch.int32)
    took = []
    for _ in range(steps):
        start = time.perf_counter()
        step(wrapper, where, lengths)
        took.append(1e3 * (time.perf_counter() - start))
    torch.cuda.synchronize()
    return statistics.fmean(took)


def main() -> None:
    """Plan with the lengths where the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("where", choices=("device", "host"))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--result", type=Path)
    asked = parser.parse_args()
    workspace = torch.empty(WORKSPACE, dtype=torch.uint8, device="cuda")
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD")
    timed(wrapper, asked.where, WARM_STEPS)
    untraced = timed(wrapper, asked.where, asked.steps)
    torch.cuda.profiler.start()
    timed(wrapper, asked.where, asked.steps)
    torch.cuda.profiler.stop()
    if asked.result:
        asked.result.write_text(json.dumps({"variant": f"plan_{asked.where}", "untraced_step_ms": untraced}))


if __name__ == "__main__":
    main()
