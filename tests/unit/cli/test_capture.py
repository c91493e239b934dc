"""`bubblefinder capture` prints a script that a shell can run, and runs nothing unless told."""

from __future__ import annotations

import json
import lzma
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.errors import InputError, UsageError
from tests.unit.capture.test_take import stand_in

if TYPE_CHECKING:
    import pytest

SAMPLES = Path(__file__).parents[3] / "sample_traces"


def printed(*words: str) -> list[str]:
    done = CliRunner().invoke(app, ["capture", *words])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_it_prints_a_script_with_the_engines_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    lines = printed("--mode", "names", "--", "python", "-m", "sglang.launch_server", "--model-path", "a b")
    comments = [line for line in lines if line.startswith("#")]
    commands = [shlex.split(line) for line in lines if not line.startswith("#")]
    assert any("/start_profile" in line for line in comments)
    assert [command[:2] for command in commands] == [
        ["bubblefinder", "rules"],
        *[["nsys", "profile"], ["nsys", "export"]] * 2,
        ["bubblefinder", "analyze"],
    ]
    assert commands[1][-1] == "a b"


def test_without_nsys_nothing_can_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("bubblefinder.trace.nsys.ROOTS", ())
    done = CliRunner().invoke(app, ["capture", "--run", "--", "python"])
    assert isinstance(done.exception, InputError)
    assert "wasn't found" in str(done.exception)
    assert "without --run" in done.exception.hint
    done = CliRunner().invoke(app, ["capture", "--nsys", "/nowhere/nsys", "--", "python"])
    assert "no nsys command" in str(done.exception)


def test_unknown_words_are_refused_in_plain_english() -> None:
    for option, known in (("--mode", "use graph, node, both, names"), ("--engine", "use sglang, vllm, tensorrt_llm")):
        error = CliRunner().invoke(app, ["capture", option, "foo", "--", "python"]).exception
        assert isinstance(error, UsageError)
        assert str(error).startswith(f"{option} 'foo' is not a")
        assert error.hint.startswith(known)


def test_an_nsys_inside_nsight_compute_is_printed_with_its_importer(tmp_path: Path) -> None:
    nsys = stand_in(tmp_path / "nsight-compute" / "2025.3.1", suffix=".qdstrm")
    (said,) = (line for line in printed("--nsys", str(nsys.command), "--", "python", "a.py") if ".qdstrm" in line)
    assert said.endswith(f"{nsys.importer} -i STEM.qdstrm -o STEM.nsys-rep")


def test_a_duration_is_never_dropped() -> None:
    error = CliRunner().invoke(app, ["capture", "--duration", "5", "--", "python", "a.py"]).exception
    assert isinstance(error, UsageError)
    assert "--duration needs --delay" in str(error)
    timed = printed("--delay", "0", "--duration", "5", "--", "python", "a.py")
    assert any("--delay=0 --duration=5" in line for line in timed)
    assert any("--delay=2 --duration=3" in line for line in printed("--delay", "2", "--", "python", "a.py"))


def recorded_as(tmp_path: Path, node: str, graph: str) -> list[str]:
    """The command that records two samples, with an nsys that stands in for the real one."""
    nsys = stand_in(tmp_path / "nsys")
    for kind, name in (("node", node), ("graph", graph)):
        (tmp_path / f"{kind}.made").write_bytes(lzma.decompress((SAMPLES / f"{name}.sqlite.xz").read_bytes()))
    head, written, tail = nsys.command.read_text().partition("    pathlib.Path(words[words.index")
    assert written
    made = f"{str(tmp_path)!r} + ('/node.made' if '.node.' in words[-1] else '/graph.made')"
    copied = f"    import shutil; shutil.copy({made}, words[words.index('--output') + 1])\n"
    nsys.command.write_text(head + copied + tail.partition("\n")[2])
    return ["capture", "--nsys", str(nsys.command), "--mode", "both", "--run", "--", sys.executable, "-V"]


def test_it_records_exports_and_analyses_with_the_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = recorded_as(tmp_path, "nextn_before.node", "nextn_before.graph")
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("The GPU idles 28.3 % of the decode time")
    report = json.loads((tmp_path / "decode.report.json").read_text())
    assert report["overhead"]["method"] == "reference_capture"
    assert (tmp_path / "decode.report.html").exists()
    again = CliRunner().invoke(app, words)
    assert "exists" in str(again.exception)


def test_a_reference_that_cannot_be_used_does_not_cost_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program without graphs has no graph mode, and was recorded all the same."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, recorded_as(tmp_path, "torch_eager", "torch_eager"))
    assert done.exit_code == 0, done.output
    assert "decode.graph.sqlite was captured in none mode: analysed without it" in done.stderr
    assert json.loads((tmp_path / "decode.report.json").read_text())["trace"]["capture_mode"] == "none"


def test_a_version_that_cannot_answer_is_refused_before_the_program_runs(tmp_path: Path) -> None:
    nsys = stand_in(tmp_path / "nsys")
    nsys.command.write_text(nsys.command.read_text().replace("2025.3.2", "2023.4.4"))
    words = ["capture", "--nsys", str(nsys.command), "--run", "-o", str(tmp_path / "x"), "--", sys.executable, "-V"]
    done = CliRunner().invoke(app, words)
    assert "doesn't export graphs that were recorded whole" in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["nsys"]
