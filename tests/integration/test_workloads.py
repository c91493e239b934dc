"""The script around the workloads, without a GPU: its matrix, and the page that it writes of captures that exist."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from workloads.run import MATRIX, truth

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
    page = truth({"read.graph": sample("nextn_before.graph")}, {"read": 8.5123}, known)
    (row,) = (line for line in page.splitlines() if line.startswith("| `read.graph`"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:4] == ["reads 8 bytes back after verify", "8.512", "0"]
    assert cells[4:] == ["208914471", "–", "43964403", "1652282", "133828", "0", "0", "0"]
