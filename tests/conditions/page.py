"""Makes docs/conditions.md from conditions.toml, corpus.toml and the names of the tests.

python -m tests.conditions.page                     writes the page
python -m tests.conditions.page FOLDER              first analyses the exports in FOLDER, which has a TRUTH.json,
                                                    and writes corpus.toml: versions and conditions, no names
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from bubblefinder.errors import EXIT_INPUT, BubblefinderError
from bubblefinder.report.build import analyze_trace
from bubblefinder.timeline.model import INTER_CLASSES
from bubblefinder.trace.open import open_trace

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "conditions.md"
GROUPS = {
    "X": "Seen in real exports",
    "A": "Counting idle time",
    "B": "CUDA graphs",
    "C": "Copies and waits",
    "D": "Capturing and exporting",
}
INTRODUCTION = """<!-- Made from tests/conditions; run `python -m tests.conditions.page`. -->

# Conditions

What has misled analyzers of GPU traces: in each row a kind of capture, and what bubblefinder says of it. Each answer
has a test under `tests/conditions` on a drawn timeline or a generated export; what is out of scope says why. What no
capture can tell is in [limits.md](limits.md).
"""
WORDS = {
    "correlationId shared by processes": "correlation ids that processes share",
    "multi-device kernels": "work on several GPUs",
    "multi-process": "several processes",
    "KERNEL.no_runtime_row": "kernels without an API call",
    "KERNEL.pids": "kernels of several processes",
    "KERNEL.start_before_launch": "kernels that start before their launch",
    "MEMSET.streams": "memsets on several streams",
    "RUNTIME.threads": "API calls of several threads",
    "RUNTIME.nonzero_return": "API calls that failed",
    "cuda-graph": "CUDA graphs",
    "NO_KERNEL_TABLE": "no table of kernels",
    "TensorRT cudagraph, no GPU rows": "graph launches without GPU rows",
}
CORPUS = """
## Exports of other people's programs

The product was also run on real exports of strangers' programs. They are not part of the project; this is what they
cover. An answer counts only if span, busy time, idle time and every idle class of every GPU are, to the nanosecond,
those of an independent program (where the profiler's own time is taken out of a class, the class may be smaller by no
more than that); a refusal only if that program found no usable GPU work either.
"""
DAMAGE = """
## Damaged exports

Copies of the sample captures and of those exports, damaged one at a time by `benchmarks/mutate.py`. A report counts
only if it keeps the laws of `tests/laws.py` in every format; a refusal only if it is one line with exit code 3. Both
have to come within ten times what reading all rows takes, and half a second. Where damage doesn't matter, the report
must be the same; where it could go unnoticed, the same or with a warning.
"""
DAMAGES = {
    "as it is": "none",
    "rename_tables": "tables named as in other versions",
    "drop_unread": "all tables and columns missing that are not read",
    "shift_all": "another clock: times before zero, or since 1970",
    "top_bit": "ids with the top bit set",
    "concatenate": "another file behind the file",
    "cut_bytes": "cut at any byte",
    "flip_page_headers": "bits flipped in the header of a page",
    "swap_pages": "two pages in each other's place",
    "cut_at_table": "a table and all behind it missing",
    "empty_table": "a table without rows",
    "drop_table": "a table missing",
    "drop_columns": "columns missing",
    "rename_columns": "columns named as in other versions",
    "plant": "nulls, texts, fractions or extreme numbers in a column",
    "shift_gpu": "the GPU's clock moved against the host's",
    "twice": "every row of a table twice",
    "merge": "the rows of another capture behind those of this one",
    "flip_bytes": "up to 1,000 bytes changed",
    "zero_block": "a stretch of zeros",
    "drop_file": "folders: a table missing",
    "cut_file": "folders: a table cut at any byte",
    "flip_file": "folders: bytes changed",
    "zero_file": "folders: a stretch of zeros",
    "other_table": "folders: a table under another's name",
}


def conditions() -> dict[str, dict[str, str]]:
    return tomllib.loads((HERE / "conditions.toml").read_text())


def tests() -> dict[str, list[str]]:
    """The tests of each condition, by its id."""
    found = defaultdict(list)
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and (named := re.match(r"test_([xabcd]\d+)_", node.name)):
                found[named[1].upper()].append(node.name)
    return dict(found)


def page() -> str:
    known = conditions()
    parts = [INTRODUCTION]
    for letter, title in GROUPS.items():
        rows = [_row(name, entry) for name, entry in known.items() if name[0] == letter]
        parts.append(f"\n## {title}\n\n| | the capture | the answer |\n|---|---|---|\n" + "".join(rows))
    corpus, damage = (tomllib.loads((HERE / name).read_text()) for name in ("corpus.toml", "damage.toml"))
    return "".join(parts) + _corpus(corpus) + _damage(damage)


def _row(name: str, entry: dict[str, str]) -> str:
    answer = entry.get("answer") or f"*Out of scope.* {entry['out_of_scope']}"
    return f"| {name} | {entry['capture']} | {answer.removesuffix('.')}. |\n"


def _corpus(seen: dict[str, Any]) -> str:
    tables = {"exporter": seen["versions"], "what the exports hold": seen["conditions"]}
    told = [
        f"| {name} | files | answered | refused |\n|---|---|---|---|\n" + _counts(rows) for name, rows in tables.items()
    ]
    return CORPUS + "\n" + "\n".join(told)


def _damage(seen: dict[str, dict[str, int]]) -> str:
    rows = [(told, seen[name]) for name, told in DAMAGES.items() if name in seen]
    table = "".join(
        f"| {told} | {kinds.get('report', 0) + kinds.get('refused', 0)} | {kinds.get('report', 0)} "
        f"| {kinds.get('refused', 0)} |\n"
        for told, kinds in rows
    )
    return DAMAGE + "\n| damage | files | reported | refused |\n|---|---|---|---|\n" + table


def _counts(rows: dict[str, dict[str, int]]) -> str:
    return "".join(
        f"| {name} | {sum(kinds.values())} | {kinds.get('answered', 0)} | {kinds.get('refused', 0)} |\n"
        for name, kinds in rows.items()
    )


def judge(path: Path, devices: list[dict[str, Any]]) -> str:
    """What came of an export: answered or refused as the truth says, else what differs."""
    try:
        report = analyze_trace(open_trace(path))
    except BubblefinderError as error:
        return "refused" if error.exit_code == EXIT_INPUT and not devices else f"wrongly refused: {error}"
    for known in devices:
        found = next((d for d in report.devices if d.gpu == known["device"] or d.pids == [known["pid"]]), None)
        if found is None or not _agrees(found, known):
            return f"differs: {found} from {known}"
    return "answered" if devices else "wrongly answered"


def _agrees(found: Any, known: dict[str, Any]) -> bool:
    """Whether a device is what the truth says, which tells profiler time twice: apart, and in the other classes."""
    told = known["ledger_ns"]
    parts = {name: getattr(found.inter_graph, f"{name}_ns") for name in INTER_CLASSES}
    exact = found.profiler_ns == 0 and all(parts[name] == told.get(name, 0) for name in parts)
    carved = found.profiler_ns > 0 and all(parts[name] <= told.get(name, 0) for name in parts)
    idle = sum(parts.values()) + (found.intra_graph_ns or 0) + found.profiler_ns
    return (found.span_ns, found.busy_ns, idle) == (known["span_ns"], known["busy_ns"], known["idle_ns"]) and (
        exact or carved
    )


def survey(folder: Path) -> dict[str, dict[str, Counter[str]]]:
    """How many exports of each version and condition were answered and refused."""
    truth = json.loads((folder / "TRUTH.json").read_text())
    versions: dict[str, Counter[str]] = defaultdict(Counter)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for name, known in sorted(truth.items()):
        verdict = judge(folder / name, known["devices"])
        sys.stdout.write(f"{name}: {verdict}\n")
        versions[re.split(r"[_-]", name)[1].rpartition(".")[0] or "unknown, before 2022"][verdict] += 1
        for condition in filter(WORDS.get, known["conditions"]):
            found[WORDS[condition]][verdict] += 1
    return {"versions": dict(sorted(versions.items())), "conditions": dict(sorted(found.items()))}


def _toml(seen: dict[str, dict[str, Counter[str]]]) -> str:
    lines = ["# Made by `python -m tests.conditions.page FOLDER`."]
    for table, rows in seen.items():
        lines += ["", f"[{table}]"]
        lines += [
            f'"{name}" = {{ {", ".join(f"{k} = {n}" for k, n in kinds.items())} }}' for name, kinds in rows.items()
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:]:
        (HERE / "corpus.toml").write_text(_toml(survey(Path(sys.argv[1]))))
    PAGE.write_text(page())
