"""The script around the workloads, without a GPU: its matrix, and the page that it writes of captures that exist."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from workloads.run import MATRIX, MODES, record, recorded, sliced, truth, untraced

if TYPE_CHECKING:
    from collections.abc import Callable


def test_every_variant_of_the_loop_is_in_the_matrix_and_on_the_page(root: Path) -> None:
    tree = ast.parse((root / "workloads" / "decode.py").read_text())
    (variants,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "VARIANTS"
    )
    assert isinstance(variants, ast.Dict)
    names = {ast.literal_eval(key) for key in variants.keys if key}
    assert names == {entry.name for entry in MATRIX if "workloads.decode" in entry.command}
    page = (root / "workloads" / "README.md").read_text()
    assert [entry.name for entry in MATRIX if f"`{entry.name}`" not in page] == []


def test_the_page_holds_the_known_answers(sample: Callable[[str], Path]) -> None:
    known = {entry.name: entry for entry in MATRIX}
    page = truth({"read.graph": sample("nextn_before.graph")}, {"read.graph": 8.5123}, known)
    (row,) = (line for line in page.splitlines() if line.startswith("| `read.graph`"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:4] == ["reads 8 bytes back after verify", "8.512", "0"]
    assert cells[4:] == ["208914471", "–", "43964403", "1652282", "133828", "0", "0", "0"]


def test_each_capture_is_held_against_the_process_that_it_is_of(tmp_path: Path) -> None:
    """Two processes of one program differ: each adds a line, and what is recorded again in one mode counts there."""
    (tmp_path / "vllm_full.both.jsonl").write_text('{"untraced_step_ms": 2.06}\n{"untraced_step_ms": 2.588}\n')
    (tmp_path / "gc.both.jsonl").write_text('{"untraced_step_ms": 33.4}\n')
    (tmp_path / "gc.graph.jsonl").write_text('{"untraced_step_ms": 31.0}\n')
    told = untraced(tmp_path, ["vllm_full", "gc", "read"])
    assert told == {"vllm_full.node": 2.06, "vllm_full.graph": 2.588, "gc.node": 33.4, "gc.graph": 31.0}


@pytest.mark.parametrize("mode", ["both", "node", "graph"])
def test_what_is_captured_is_found_again_to_slice(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture in both modes adds their names to its stem, one in a single mode writes the stem as it is given."""

    def captured(*words: str, **_: object) -> int:
        stem = Path(words[words.index("-o") + 1])
        for written in [f"{stem.name}.node", f"{stem.name}.graph"] if mode == "both" else [stem.name]:
            stem.with_name(f"{written}.sqlite").touch()
        return 0

    monkeypatch.setattr("workloads.run.bubblefinder", captured)
    (entry,) = (entry for entry in MATRIX if entry.name == "sglang_nextn")
    assert record(entry, tmp_path, mode, 60)
    modes = MODES if mode == "both" else (mode,)
    assert [path.name for path in recorded(tmp_path, ["sglang_nextn"])] == [
        f"sglang_nextn.{one}.sqlite" for one in modes
    ]


def test_an_entry_that_ended_before_its_export_is_cut_from_its_report(tmp_path: Path) -> None:
    for name in ("read.node.sqlite", "read.node.nsys-rep", "gc.graph.nsys-rep", "other.graph.sqlite"):
        (tmp_path / name).touch()
    assert [path.name for path in recorded(tmp_path, ("read", "gc"))] == ["read.node.sqlite", "gc.graph.nsys-rep"]


def test_a_capture_without_the_steps_that_are_asked_for_is_kept_whole(
    tmp_path: Path, sample: Callable[[str], Path]
) -> None:
    whole = tmp_path / "read.graph.sqlite"
    whole.write_bytes(sample("torch_eager").read_bytes())
    part = sliced(whole, "900:910")
    assert part == tmp_path / "read.graph.slice.sqlite.xz"
    assert part.stat().st_size > 1000
