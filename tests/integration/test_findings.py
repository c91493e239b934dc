"""What the rules must say of the sample captures, and what they must not."""

from __future__ import annotations

import lzma
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import polars as pl
import pytest

from bubblefinder.causes.facts import SiteFacts
from bubblefinder.pipeline import Analysis
from bubblefinder.rules.config import Config
from bubblefinder.rules.engine import run_rules
from bubblefinder.rules.packs import load_packs
from tests import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bubblefinder.rules.model import Match

    Sample = Callable[[str], Path]

INSIDE_GRAPHS = {"CUDA151", "CUDA152", "CUDA153"}
HEALTHY = ["nextn_after.node", "dspark_after.node", "nextn_after_pdl.node", "tp2_after.graph", "null_gpu_1.graph"]
RESOLVES = ["hard_before.graph", "null_host_1.graph", "null_host_2.graph", "null_host_3.graph"]


@cache
def findings(name: str, *, names: bool = True, seen: str = "") -> tuple[Match, ...]:
    """Return the findings on a capture, with its NVTX ranges or as if it had none, and a library seen all the same."""
    analysis = samples.analysis(name)
    if not names:
        analysis = Analysis(replace(analysis.trace, nvtx=analysis.trace.nvtx.clear()))
    facts = analysis.facts
    facts = replace(facts, programs=(*facts.programs, seen)) if seen else facts
    return run_rules(facts, load_packs(), Config()).findings


def above_info(matches: tuple[Match, ...]) -> list[str]:
    return [match.rule for match in matches if match.severity != "info" and match.rule not in INSIDE_GRAPHS]


@pytest.mark.parametrize(
    ("capture", "bubble_us", "in_all_steps"), [("nextn_before.node", 1630, 10), ("nextn_before.graph", 1440, 30)]
)
def test_the_resolve_is_one_high_finding(capture: str, bubble_us: float, in_all_steps: int) -> None:
    (match,) = [match for match in findings(capture) if match.severity == "high"]
    site = match.subject
    assert (match.rule, match.confidence) == ("SGL001", "high")
    assert isinstance(site, SiteFacts)
    assert (site.copy_kind, site.memory_kind, site.bytes) == ("DtoH", "pageable", 8)
    assert site.nvtx == "FutureMap.resolve_seq_lens_cpu"
    assert site.per_step_count == 1
    assert site.steps_affected == in_all_steps
    assert site.bubble_p50_ns == pytest.approx(bubble_us * 1000, rel=0.03)
    assert "needs_cpu_seq_lens" in match.remedy


@pytest.mark.parametrize("capture", ["nextn_before.node", "nextn_before.graph", "tp2_before.node"])
def test_without_names_it_is_a_blocking_read_and_the_resolve_a_candidate_where_sglang_is_seen(capture: str) -> None:
    role = "main" if "graph" in capture else "verify"  # no name is left that tells of a language model
    for seen in ("", "sglang"):
        match = findings(capture, names=False, seen=seen)[0]
        assert (match.rule, match.title, match.confidence) == ("CUDA001", f"Blocking read after {role}", "low")
        assert ("resolve_seq_lens_cpu" in match.message) is bool(seen)
        # Without kernel names nothing shows that PyTorch is at work: then its words are not said.
        assert (".tolist()" in match.message) is ("graph" not in capture)


@pytest.mark.parametrize("capture", RESOLVES)
def test_the_engines_own_shape_is_named_without_nvtx_where_it_is_seen(capture: str) -> None:
    match = findings(capture, names=False, seen="sglang")[0]
    assert (match.rule, match.confidence) == ("SGL001", "medium")
    assert findings(capture, names=False)[0].rule == "CUDA001"


def test_a_plan_is_one_finding_for_its_three_reads() -> None:
    waits = [match for match in findings("dspark_before.node") if isinstance(match.subject, SiteFacts)]
    assert [(match.rule, match.confidence) for match in waits] == [("FI001", "high")]
    assert waits[0].bubble_p50_ns == pytest.approx(180_000, rel=0.1)
    assert isinstance(waits[0].subject, SiteFacts)
    assert waits[0].subject.per_step_count == 3


def test_a_plan_is_told_by_its_shape() -> None:
    for seen, told in (("flashinfer", ("FI002", "medium")), ("", ("CUDA001", "low"))):
        waits = [match for match in findings("dspark_before.node", names=False, seen=seen) if match.sites]
        assert [(match.rule, match.confidence) for match in waits] == [told]


def test_a_scalar_read() -> None:
    assert findings("nextn_item_nonvtx.node")[0].rule == "TORCH001"


def test_without_graphs_the_host_is_the_headline() -> None:
    match, *others = findings("eager_item")
    assert (match.rule, match.severity) == ("CUDA102", "high")
    assert [other.rule for other in others] == ["TORCH001", "CUDA153"]


def test_both_ranks_share_one_finding() -> None:
    resolves = [match for match in findings("tp2_before.node") if match.rule == "SGL001"]
    assert [[gpu for gpu, _ in match.devices] for match in resolves] == [[0, 1]]
    assert len(resolves[0].sites) == 2


@pytest.mark.parametrize("capture", HEALTHY)
@pytest.mark.parametrize("names", [True, False])
def test_a_healthy_loop_has_nothing_above_info_between_its_graphs(capture: str, *, names: bool) -> None:
    assert above_info(findings(capture, names=names)) == []


def test_gaps_inside_graphs_say_how_much_overlaps() -> None:
    plain, overlapping = (
        next(match for match in findings(capture) if match.rule in INSIDE_GRAPHS)
        for capture in ("nextn_after.node", "nextn_after_pdl.node")
    )
    assert (plain.rule, overlapping.rule) == ("CUDA151", "CUDA152")
    assert "0.0 % of neighbouring kernels overlap" in plain.message
    assert "2.5 % of neighbouring kernels overlap" in overlapping.message


def test_a_slow_host_without_a_wait() -> None:
    match = findings("hard_after.graph")[0]
    assert (match.rule, match.severity) == ("CUDA101", "high")


def test_nothing_is_said_where_graph_work_is_missing() -> None:
    assert findings("dspark_before.nsys2023.graph") == ()


@pytest.mark.parametrize("capture", ["nextn_before.node", "nextn_before.graph", "tp2_before.node"])
def test_every_row_of_evidence_lies_where_it_says(sample: Sample, tmp_path: Path, capture: str) -> None:
    path = tmp_path / "capture.sqlite"
    path.write_bytes(lzma.decompress(sample(capture).read_bytes()))
    rows = [row for match in findings(capture) for row in match.evidence]
    assert rows
    with closing(sqlite3.connect(path)) as export:
        for row in rows:
            stored = export.execute(f'SELECT start, "end" FROM "{row.table}" LIMIT 1 OFFSET {row.row}').fetchone()
            assert stored == (row.start_ns, row.end_ns)


def test_evidence_in_a_folder_of_parquet_files(sample: Sample) -> None:
    folder = sample("dspark_before.node_pqtdir")
    rows = [row for match in findings(folder.name) for row in match.evidence]
    assert rows
    tables = {row.table: pl.read_parquet(folder / f"{row.table}.parquet", columns=["start", "end"]) for row in rows}
    assert all(tables[row.table].row(row.row) == (row.start_ns, row.end_ns) for row in rows)


def test_both_formats_say_the_same() -> None:
    told = [[(m.rule, m.severity, m.message) for m in findings(f"dspark_before.node{end}")] for end in ("", "_pqtdir")]
    assert told[0] == told[1]
