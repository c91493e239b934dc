"""Measures how often steps are right by how sure they are said to be: `python -m benchmarks.confidence --engines 2000`.

Plays random engines whose steps are known (`tests/engines.py`, which shares no code with the analysis), finds the
steps of each, and prints a table. Captures with known steps are judged beside them.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline
from bubblefinder.trace.open import open_trace
from tests.engines import engine, right

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.steps.model import Steps

COUNTED = ("", "tail", "capture_start", "other_regime")
SAMPLES = Path(__file__).parent.parent / "sample_traces"
KNOWN = {
    "nextn_before.node": 10, "nextn_after.node": 10, "nextn_before.graph": 30, "nextn_after_pdl.node": 8,
    "dspark_before.node": 10, "dspark_after.node": 10, "nextn_item_nonvtx.node": 8, "eager_item": 6,
    "nextn_before.nsys2023.node": 6, "tp2_before.node": 5, "tp2_after.graph": 20, "hard_before.graph": 30,
    "hard_after.graph": 30, "null_host_1.graph": 60, "null_host_2.graph": 60, "null_host_3.graph": 60,
    "null_gpu_1.graph": 60, "null_gpu_2.graph": 60, "null_gpu_3.graph": 60, "torch_adaptive.node": 40,
    "torch_batches.node": 40, "torch_prefill.node": 40, "torch_piecewise.node": 40, "torch_eager": 40,
}  # fmt: skip
"""Sample captures and how many steps each has."""
CUT_OUT = {
    "sglang/arrive.graph": 22, "sglang/batch_8.graph": 31, "sglang/chain.graph": 31, "sglang/chain_1.graph": 31,
    "sglang/chain_2.graph": 31, "sglang/chain_3.graph": 31, "sglang/dspark.graph": 31, "sglang/fi.graph": 31,
    "sglang/fi.node": 15, "sglang/fi_2.graph": 31, "sglang/fi_functions.graph": 31, "sglang/fi_nvtx.node": 15,
    "sglang/functions_few.graph": 31, "sglang/functions_many.graph": 31, "sglang/grammar.graph": 21,
    "sglang/logprob.graph": 31, "sglang/off_logprob.graph": 31, "sglang/overlap_off.graph": 31,
    "sglang/slow_host.graph": 31, "sglang/switch.graph": 31, "sglang/triton.graph": 31, "sglang/triton.node": 15,
    "sglang/triton_functions.graph": 31, "vllm/full.graph": 41, "vllm/full.node": 21, "vllm/piecewise.node": 17,
    "vllm/sync.graph": 41, "workloads/ahead.graph": 31, "workloads/batching_async.graph": 31,
    "workloads/batching_sync.graph": 31, "workloads/eager.graph": 10, "workloads/empty_cache.graph": 31,
    "workloads/fallback.node": 16, "workloads/gc.graph": 31, "workloads/lazy.graph": 31,
    "workloads/plan_device.graph": 31, "workloads/plan_host.graph": 31, "workloads/read.graph": 31,
    "workloads/slow_rank.graph": 21, "sglang/hybrid.graph": 31, "sglang/hybrid.node": 13,
    "sglang/hybrid_nextn.graph": 21, "sglang/tp2.graph": 21, "sglang/tp2.node": 9, "sglang/dspark_moe.graph": 31,
    "vllm/batch_8.graph": 41, "vllm/functions.graph": 41, "vllm/piecewise_8.node": 13, "vllm/sync_logprob.graph": 31,
    "vllm/ngram.graph": 29, "workloads/sglang_triton.graph": 31,
    "workloads/sglang_patched.graph": 31, "workloads/sglang_nextn_8.graph": 25,
    "workloads/sglang_hybrid_nextn.graph": 31, "workloads/sglang_hybrid_nextn_2.graph": 31,
    "workloads/sglang_hybrid_flashinfer.graph": 21, "workloads/sglang_ngram.graph": 31,
    "vllm/sync_chains.node": 13, "workloads/vllm_piecewise.graph": 21, "workloads/vllm_piecewise.node": 15,
    "workloads/sglang_plain.graph": 29, "workloads/sglang_plain.node": 13, "workloads/slow_rank_2ms.graph": 19,
    "workloads/slow_rank_2ms.node": 13, "workloads/sglang_nextn.graph": 31, "workloads/sglang_nextn.node": 13,
    "workloads/vllm_full.graph": 31, "workloads/vllm_sync.graph": 31,
}  # fmt: skip
"""Slices of captures of real engines and loops, and how many steps each has, with the one that is cut off behind."""

Verdict = tuple[str, str, bool]
"""What was judged, how sure it was, and whether it was right."""


def begins(steps: Steps) -> list[int]:
    """Where the decode steps begin, those of all regimes."""
    return steps.windows.filter(pl.col("excluded").fill_null("").is_in(COUNTED))["start_ns"].to_list()


def engines(seeds: Sequence[int]) -> Iterator[Verdict]:
    """Judge engines."""
    for seed in seeds:
        played = engine(seed)
        steps = find_steps(build_timeline(played.trace))
        yield played.plan.kind, steps.confidence, right(begins(steps), played.steps)


def captures() -> Iterator[Verdict]:
    """Judge the sample captures by the number of steps of their first GPU.

    Whole ones with NVTX and without; slices without it, and without what they keep of the steps of the whole.
    """
    for name, count in (KNOWN | CUT_OUT).items():
        trace = replace(open_trace(next(SAMPLES.glob(f"{name}.sqlite*"))), part=None)
        for nvtx in (True, False) if name in KNOWN else (False,):
            timeline = build_timeline(trace if nvtx else replace(trace, nvtx=trace.nvtx.clear()))
            steps = find_steps(timeline)
            mine = steps.windows.filter(pl.col("gpu") == steps.windows["gpu"].min())
            found = int(mine["excluded"].fill_null("").is_in(COUNTED).sum())
            yield "sample captures", steps.confidence, found == count


def table(verdicts: Sequence[Verdict]) -> str:
    """Return the counts by confidence."""
    counts = Counter((sure, good) for _, sure, good in verdicts)
    lines = [f"{'confidence':<12}{'right':>8}{'wrong':>8}{'share of all':>14}{'wrong of these':>16}"]
    for sure in ("high", "medium", "low"):
        good, bad = counts[sure, True], counts[sure, False]
        share, wrong = (good + bad) / max(len(verdicts), 1), bad / max(good + bad, 1)
        lines.append(f"{sure:<12}{good:>8}{bad:>8}{share:>14.1%}{wrong:>16.2%}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", type=int, default=200)
    parser.add_argument("--first", type=int, default=10_000, help="the seed of the first engine")
    asked = parser.parse_args(arguments)
    judged = list(engines(range(asked.first, asked.first + asked.engines)))
    print(f"{len(judged)} engines\n{table(judged)}")
    for kind in sorted({kind for kind, _, _ in judged}):
        mine = [one for one in judged if one[0] == kind]
        print(f"  {kind:<12} right {sum(good for _, _, good in mine):>5} of {len(mine)}")
    samples = list(captures())
    print(f"\n{len(samples)} readings of sample captures\n{table(samples)}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
