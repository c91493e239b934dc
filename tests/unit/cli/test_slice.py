"""`bubblefinder slice` as a user runs it."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.errors import UsageError
from bubblefinder.trace.open import open_trace

SAMPLE = Path(__file__).parents[3] / "sample_traces" / "nextn_before.graph.sqlite.xz"


def test_it_says_what_it_wrote_and_what_that_still_holds(tmp_path: Path) -> None:
    out = tmp_path / "part.sqlite.xz"
    done = CliRunner().invoke(app, ["slice", str(SAMPLE), str(out), "--steps", "3:5"])
    assert done.stdout == ""
    first, second = done.stderr.splitlines()
    assert first == f"wrote {out}: 15 operations, 32 API calls, 14 kB"
    assert second == "It holds what `bubblefinder doctor --privacy` lists; --scrub leaves that out."
    assert open_trace(out).part is not None
    again = CliRunner().invoke(app, ["slice", str(SAMPLE), str(out), "--window", "0.1s:0.2s", "--scrub", "--force"])
    assert len(again.stderr.splitlines()) == 1


def test_a_file_is_not_replaced_unless_told(tmp_path: Path) -> None:
    out = tmp_path / "part.sqlite"
    out.write_text("mine")
    done = CliRunner().invoke(app, ["slice", str(SAMPLE), str(out), "-q"])
    assert isinstance(done.exception, UsageError)
    assert "--force" in done.exception.hint
    assert out.read_text() == "mine"
