"""The recipe on the real Nsight Systems: its loader, its three modes, what it leaves, and its notebook."""

from __future__ import annotations

import json
import lzma
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from tests import processes

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

SOURCES = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="module")
def reports(sample: Callable[[str], Path], root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reports with their exports beside them: `--input` takes only names of reports."""
    place = tmp_path_factory.mktemp("reports")
    for name in ("nextn_before.node", "tp2_before.node"):
        report = place / f"{name}.nsys-rep"
        report.write_bytes((root / "sample_traces" / "nvtx_loop.nsys-rep").read_bytes())
        os.utime(report, (0, 0))
        (place / f"{name}.sqlite").write_bytes(lzma.decompress(sample(name).read_bytes()))
    return place


def run(nsys: Path, reports: Path, out: Path, mode: str) -> subprocess.CompletedProcess[str]:
    framework = next(nsys.parents[1].glob("**/python/packages/nsys_recipe"))
    (framework / "third_party").mkdir(
        exist_ok=True
    )  # Debian's package drops the empty folder, and nothing runs without
    found = processes.run([Path(sys.executable).with_name("bubblefinder"), "recipe", "path"], check=True).stdout.strip()
    assert found == f"export NSYS_RECIPE_PATH={SOURCES}"
    environment = {
        **os.environ, "NSYS_RECIPE_PATH": str(SOURCES), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
    }  # fmt: skip
    command = [str(nsys), "recipe", "bubblefinder", "--input", str(reports), "--output", str(out), "--mode", mode]
    return processes.run(command, env=environment)


@pytest.mark.parametrize("mode", ["none", "concurrent", "dask-futures"])
def test_it_runs_in_every_mode(real_nsys: Path, reports: Path, tmp_path: Path, mode: str) -> None:
    out = tmp_path / "out"
    done = run(real_nsys, reports, out, mode)
    assert done.returncode == 0, done.stderr
    ranks = pd.read_parquet(out / "analysis.parquet")
    assert ranks["capture"].to_list() == ["nextn_before.node.sqlite", *["tp2_before.node.sqlite"] * 2]
    assert ranks["step_ns"].iloc[0] == pytest.approx(8.93e6, rel=1e-3)
    assert "resolve_seq_lens_cpu" in ranks["first"].iloc[0]
    assert {"fleet.html", "nextn_before.node.html", "tp2_before.node.html"} <= {path.name for path in out.iterdir()}
    left = json.loads((out / "out.nsys-analysis").read_text())
    assert left["Mode"] == mode
    assert left["Outputs"]["analysis.ipynb"] == "Notebook"


def test_its_notebook_runs(real_nsys: Path, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    assert run(real_nsys, reports, out, "none").returncode == 0
    monkeypatch.chdir(out)
    notebook = json.loads((out / "analysis.ipynb").read_text())
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)  # noqa: S102 - our own notebook
    assert len(names["parts"]) == 6  # type: ignore[arg-type]
