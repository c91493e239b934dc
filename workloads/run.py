"""Captures workloads on a GPU machine: runs, exports, slices, scrubs, and writes the page of truths.

usage: python -m workloads.run OUT [ENTRY ...] [--mode both] [--steps 2:12] [--limit SECONDS]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from bubblefinder.trace.open import open_trace
from tests.reference import ledger

if TYPE_CHECKING:
    from collections.abc import Iterable

CLASSES = ("busy", "intra_graph", "host_late", "launching", "queued", "unattributed", "unrecorded", "profiler")
MODES = ("node", "graph")
BOTH = "both"
ENTRY_S = 150
"""No loop takes longer in both modes, unless something hangs."""
ENGINE_S = 420
"""Nor does an engine, which starts anew for each mode and compiles at its first start."""
LEAST = 0.3
"""An entry takes at least this share of the longest that it may: none is started with less time left."""
ALONE = {
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
}
"""What keeps the engines off the network and from compiling more than is asked for; what is set already wins."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A workload: its name, what is run after ``python``, what its host does, its GPUs, and the longest it may take."""

    name: str
    command: tuple[str, ...]
    does: str
    gpus: int = 1
    longest_s: float = ENTRY_S


def _decode(name: str, does: str) -> Entry:
    return Entry(name, ("-m", "workloads.decode", name), does)


def _engine(engine: str, variant: str, does: str) -> Entry:
    return Entry(f"{engine}_{variant}", ("-m", f"workloads.{engine}_decode", variant), does, longest_s=ENGINE_S)


def _generate(variant: str, does: str) -> Entry:
    return Entry(f"generate_{variant}", ("-m", "workloads.generate", variant), does)


RANKS = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "workloads.decode", "slow_rank")
MATRIX = (
    _decode("ahead", "waits for the previous step's event only"),
    _decode("read", "reads 8 bytes back after verify"),
    _decode("gc", "collects garbage every 8th step"),
    _decode("empty_cache", "frees cached memory every 4th step"),
    _decode("lazy", "sorts for the first time at step 10"),
    _decode("fallback", "runs verify without its graph every 5th step"),
    _decode("eager", "uses no graphs, and .item()"),
    Entry("batching_sync", ("-m", "workloads.batching", "sync"), "prepares a batch, runs it, waits, reads it back"),
    Entry("batching_async", ("-m", "workloads.batching", "async"), "prepares the next batch while this one runs"),
    _generate("dynamic", "transformers' generate, kernel by kernel"),
    _generate("static", "transformers' generate, compiled, with a cache of fixed size"),
    _generate("assisted", "transformers' generate with a draft model"),
    Entry("plan_device", ("-m", "workloads.plan", "device"), "calls FlashInfer's plan(), lengths on the GPU"),
    Entry("plan_host", ("-m", "workloads.plan", "host"), "calls FlashInfer's plan(), lengths on the host"),
    _engine("vllm", "full", "vLLM as it comes"),
    _engine("vllm", "piecewise", "vLLM with a graph for each piece of a step"),
    _engine("vllm", "sync", "vLLM without asynchronous scheduling"),
    _engine("sglang", "nextn", "SGLang with FlashInfer and NEXTN, which reads lengths back"),
    _engine("sglang", "triton", "SGLang with Triton's attention and NEXTN"),
    _engine("sglang", "plain", "SGLang with FlashInfer, a token a step"),
    _engine("sglang", "overlap_off", "SGLang with FlashInfer and NEXTN, its scheduler not overlapped"),
    _engine("sglang", "patched", "SGLang with FlashInfer and NEXTN, its blocking reads taken out"),
    _engine("sglang", "nextn_8", "SGLang with FlashInfer and NEXTN, eight requests at once"),
    _engine("sglang", "arrive", "SGLang with FlashInfer and NEXTN, another prompt comes meanwhile"),
    _engine("sglang", "hybrid_flashinfer", "SGLang with linear attention, FlashInfer's and NEXTN"),
    _engine("sglang", "fa3_nextn", "SGLang with FlashAttention 3 and NEXTN"),
    _engine("sglang", "dspark", "SGLang with FlashInfer and DSpark, a dense model"),
    _engine("sglang", "ngram", "SGLang with FlashInfer and drafts looked up in the text, a dense model"),
    Entry("slow_rank", RANKS, "two ranks; rank 1 works 2 ms longer on the host", gpus=2),
)


def bubblefinder(*words: str, log: Path, seconds: float) -> int | None:
    """Run the product with what it says appended to `log`, and return its exit code; null if it took too long."""
    with log.open("ab") as said:
        said.write(f"\n$ bubblefinder {' '.join(words)}\n".encode())
        said.flush()
        command = [sys.executable, "-m", "bubblefinder", *words]
        running = subprocess.Popen(
            command, stdout=said, stderr=subprocess.STDOUT, start_new_session=True, env=ALONE | os.environ
        )
        try:
            return running.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)  # the profiler and the program too
            running.wait()
            return None


def gpus() -> int:
    """Return how many GPUs the driver lists."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False).stdout
    except OSError:
        return 0
    return sum(line.startswith("GPU ") for line in listed.splitlines())


def record(entry: Entry, out: Path, mode: str, seconds: float) -> bool:
    """Capture an entry and analyse it; say how that went."""
    started = time.monotonic()
    results = out / f"{entry.name}.{mode}.jsonl"
    for old in out.glob(f"{entry.name}.*.jsonl") if mode == BOTH else [results]:
        old.unlink(missing_ok=True)
    program = (sys.executable, *entry.command, "--result", str(results))
    stem = str(out / (entry.name if mode == BOTH else f"{entry.name}.{mode}"))  # both add their modes themselves
    log = out / f"{entry.name}.log"
    words = ("capture", "--mode", mode, "--run", "--force", "-o", stem, "--", *program)
    code = bubblefinder(*words, log=log, seconds=seconds)
    took = time.monotonic() - started
    print(f"{entry.name:14} {'ended by the limit' if code is None else f'exit {code}'} after {took:.0f} s", flush=True)
    if code != 0:
        print("\n".join(log.read_text(errors="replace").splitlines()[-8:]), flush=True)
    return code == 0


def sliced(whole: Path, steps: str) -> Path | None:
    """Return the scrubbed slice of an export or report, whole where its steps aren't found; null if none can be cut."""
    part = whole.with_suffix(".slice.sqlite.xz")
    words = ("slice", str(whole), str(part), "--scrub", "--force")
    log = whole.with_name(f"{whole.name.partition('.')[0]}.log")
    cuts = (("--steps", steps), ())
    return part if any(bubblefinder(*words, *cut, log=log, seconds=ENTRY_S) == 0 for cut in cuts) else None


def recorded(out: Path, names: Iterable[str]) -> list[Path]:
    """Return the exports in a folder, and the reports of entries that ended before theirs was exported."""
    stems = [out / f"{name}.{mode}" for name in names for mode in MODES]
    either = [[stem.with_name(stem.name + suffix) for suffix in (".sqlite", ".nsys-rep")] for stem in stems]
    return [next(path for path in paths if path.exists()) for paths in either if any(path.exists() for path in paths)]


def untraced(out: Path, names: Iterable[str]) -> dict[str, float]:
    """Return by export how long a step of its process took without the profiler, in ms; each adds a line, in order."""
    found: dict[str, float] = {}
    for name, mode in product(names, (BOTH, *MODES)):
        file = out / f"{name}.{mode}.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        told = (json.loads(line)["untraced_step_ms"] for line in lines)
        found |= {f"{name}.{one}": step_ms for one, step_ms in zip(MODES if mode == BOTH else [mode], told)}  # noqa: B905
    return found


def truth(captures: dict[str, Path], results: dict[str, float], entries: dict[str, Entry]) -> str:
    """Return the page: one row a capture and GPU, in ns, by the definitions alone."""
    lines = [
        "# Known answers",
        "",
        "Computed by `tests/reference.py` over the whole slice; ns. `–` is not measured.",
        "A step was timed without the profiler in the process that was captured then.",
        "",
        "| capture | the host | untraced step ms | GPU | " + " | ".join(CLASSES) + " |",
        "|---" * (4 + len(CLASSES)) + "|",
    ]
    for name, path in captures.items():
        entry = entries[name.partition(".")[0]]
        trace = open_trace(path)
        for gpu in sorted(trace.operations["gpu"].unique()):
            found = ledger(trace, gpu)
            told = results.get(name)
            unseen = {"intra_graph"} if trace.operations["graph_node"].null_count() == len(trace.operations) else set()
            numbers = " | ".join("–" if kind in unseen else str(found[kind]) for kind in CLASSES)
            lines.append(f"| `{name}` | {entry.does} | {f'{told:.3f}' if told else '–'} | {gpu} | {numbers} |")
    return "\n".join(lines) + "\n"


def write_truth(out: Path, steps: str, entries: dict[str, Entry]) -> int:
    """Slice every export in the folder, write the page about all of them, and return how many were sliced."""
    there = recorded(out, entries)
    with ThreadPoolExecutor() as pool:
        parts = list(pool.map(lambda whole: sliced(whole, steps), there))
    captures = {whole.stem: part for whole, part in zip(there, parts, strict=True) if part}
    (out / "TRUTH.md").write_text(truth(captures, untraced(out, entries), entries))
    return len(captures)


def main() -> int:
    """Run what the command line asks for; 1 if something could not be captured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("entries", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--mode", choices=(BOTH, *MODES), default=BOTH)
    parser.add_argument("--steps", default="2:12")
    parser.add_argument("--limit", type=float, default=3600, metavar="SECONDS", help="start no entry after this time")
    asked = parser.parse_args()
    known = {entry.name: entry for entry in MATRIX}
    if asked.list or asked.out is None:
        for entry in MATRIX:
            print(f"{entry.name:14} {entry.does}")
        return 0
    asked.out.mkdir(parents=True, exist_ok=True)
    until, failed, several = time.monotonic() + asked.limit, [], gpus()
    for entry in [known[name] for name in asked.entries or known]:
        left = until - time.monotonic()
        late = left < LEAST * entry.longest_s
        if late or 1 < entry.gpus > several:
            print(f"{entry.name:14} skipped: {'no time is left' if late else 'too few GPUs'}", flush=True)
            failed.append(entry.name)
        elif not record(entry, asked.out, asked.mode, min(left, entry.longest_s)):
            failed.append(entry.name)
    written = write_truth(asked.out, asked.steps, known)
    print(f"{written} slices; TRUTH.md is written; not captured: {', '.join(failed) or 'none'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
