"""The page on library use runs from top to bottom."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.processes import run

ROOT = Path(__file__).parents[1]


def test_the_examples_run(tmp_path: Path) -> None:
    (tmp_path / "sample_traces").symlink_to(ROOT / "sample_traces")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "library.md").read_text(), re.DOTALL)
    done = run(
        [sys.executable, "-W", "error", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "POLARS_MAX_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("28.3% of the decode time idle, 18.5% between graphs\nSequence lengths")
    assert "improvement" in done.stdout
    assert (tmp_path / "gaps.html").stat().st_size > 10_000
