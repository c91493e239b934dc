"""Captures workloads on a GPU machine: runs, exports, slices, scrubs, and writes the page of truths.

usage: python -m workloads.run OUT [ENTRY ...] [--modes node,graph] [--steps 2:12]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bubblefinder.trace.open import open_trace
from tests.reference import ledger

CLASSES = ("busy", "intra_graph", "host_late", "launching", "queued", "unattributed", "unrecorded", "profiler")


@dataclass(frozen=True, slots=True)
class Entry:
    """A workload: its name, what is run after ``python``, and what its host does."""

    name: str
    command: tuple[str, ...]
    does: str


def _decode(name: str, does: str) -> Entry:
    return Entry(name, ("-m", "workloads.decode", name), does)


RANKS = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "workloads.decode", "slow_rank")
MATRIX = (
    _decode("ahead", "waits for the previous step's event only"),
    _decode("read", "reads 8 bytes back after verify"),
    _decode("gc", "collects garbage every 8th step"),
    _decode("empty_cache", "frees cached memory every 4th step"),
    _decode("lazy", "loads a module at step 10"),
    _decode("fallback", "runs verify without its graph every 5th step"),
    _decode("eager", "uses no graphs, and .item()"),
    Entry("slow_rank", RANKS, "two ranks; rank 1 works 0.4 ms longer on the host"),
    Entry("plan_device", ("-m", "workloads.plan", "device"), "FlashInfer's plan(), lengths on the GPU"),
    Entry("plan_host", ("-m", "workloads.plan", "host"), "FlashInfer's plan(), lengths on the host"),
)


def bubblefinder(*words: str) -> int:
    """Run the product, and return its exit code."""
    return subprocess.run([sys.executable, "-m", "bubblefinder", *words], check=False).returncode


def record(entry: Entry, mode: str, out: Path, steps: str) -> Path | None:
    """Capture an entry and return its scrubbed slice; null if it could not be captured."""
    stem = out / f"{entry.name}.{mode}"
    program = (sys.executable, *entry.command, "--result", str(out / f"{entry.name}.json"))
    bubblefinder("capture", "--mode", mode, "--run", "--force", "-o", str(stem), "--", *program)
    part = out / f"{entry.name}.{mode}.slice.sqlite.xz"
    if bubblefinder("slice", f"{stem}.sqlite", str(part), "--steps", steps, "--scrub", "--force"):
        return None
    return part


def truth(captures: dict[str, Path], results: dict[str, float], entries: dict[str, Entry]) -> str:
    """Return the page: one row a capture and GPU, in ns, by the definitions alone."""
    lines = [
        "# Known answers",
        "",
        "Computed by `tests/reference.py` over the whole slice; ns. `–` is not measured.",
        "",
        "| capture | the host | untraced step ms | GPU | " + " | ".join(CLASSES) + " |",
        "|---" * (4 + len(CLASSES)) + "|",
    ]
    for name, path in captures.items():
        entry = entries[name.partition(".")[0]]
        trace = open_trace(path)
        for gpu in sorted(trace.operations["gpu"].unique()):
            found = ledger(trace, gpu)
            told = results.get(entry.name)
            unseen = {"intra_graph"} if trace.operations["graph_node"].null_count() == len(trace.operations) else set()
            numbers = " | ".join("–" if kind in unseen else str(found[kind]) for kind in CLASSES)
            lines.append(f"| `{name}` | {entry.does} | {f'{told:.3f}' if told else '–'} | {gpu} | {numbers} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run what the command line asks for; 1 if something could not be captured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("entries", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--modes", default="node,graph")
    parser.add_argument("--steps", default="2:12")
    asked = parser.parse_args()
    known = {entry.name: entry for entry in MATRIX}
    if asked.list or asked.out is None:
        for entry in MATRIX:
            print(f"{entry.name:12} {entry.does}")
        return 0
    asked.out.mkdir(parents=True, exist_ok=True)
    captures: dict[str, Path] = {}
    chosen = [known[name] for name in asked.entries or known]
    for entry in chosen:
        for mode in asked.modes.split(","):
            if part := record(entry, mode, asked.out, asked.steps):
                captures[f"{entry.name}.{mode}"] = part
    files = {name: asked.out / f"{name}.json" for name in known}
    results = {name: json.loads(file.read_text())["untraced_step_ms"] for name, file in files.items() if file.exists()}
    (asked.out / "TRUTH.md").write_text(truth(captures, results, known))
    return int(len(captures) < len(chosen) * len(asked.modes.split(",")))


if __name__ == "__main__":
    sys.exit(main())
