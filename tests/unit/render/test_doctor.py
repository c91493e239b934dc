"""What a capture is and can answer, before any number."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from bubblefinder.render.doctor import print_examination
from bubblefinder.report.examination import examine
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.model import QualityNote

if TYPE_CHECKING:
    import pytest

    from bubblefinder.trace.model import Trace

NODE = "api | GCG\ngpu0 | .aCa\nG = graph a\nC = copy DtoH 8 pageable"


def told(trace: Trace, capsys: pytest.CaptureFixture[str]) -> str:
    print_examination(examine(trace))
    return capsys.readouterr().out


def test_what_it_holds_is_counted_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(draw(NODE), capsys).splitlines()
    assert lines[1] == "holds 2 kernels, 1 copy, 3 API calls"
    assert told(draw("api | G\ngpu0 | .G\nG = graph"), capsys).splitlines()[1] == "holds 1 graph replay, 1 API call"


def test_gaps_without_calls_are_answered_in_part() -> None:
    whole, lost = "api | ABC\ngpu0 | .ABC", "api | A\ngpu0 | .ABC"
    asked = "how long is the GPU idle, and which call ended each gap"
    assert dict(examine(draw(whole)).answers)[asked] == "yes"
    assert dict(examine(draw(lost)).answers)[asked].startswith("partly: how long, but 67 % of the GPU's work has no")
    assert dict(examine(draw("gpu0 | .ABC")).answers)[asked] == "partly: how long, but no API calls were traced"


def test_the_command_says_what_it_is_for() -> None:
    examined = examine(draw("api | G\ngpu0 | .G\nG = graph"))
    assert examined.purpose == "see inside every graph"
    assert "--cuda-graph-trace=node" in examined.command
    assert examine(draw("api | L\nL = cudaLaunchKernel")).purpose == "record GPU work"
    eager = examine(draw("api | A\ngpu0 | .A"))
    assert (eager.purpose, eager.command) == ("", "")


def test_ranges_that_name_no_part_of_the_program_are_not_denied() -> None:
    drawn = draw("nvtx | [scan]\napi  | .A.\ngpu0 | ..A")
    asked = "which part of the program waits"

    def answer(**changed: pl.Expr) -> str:
        return dict(examine(replace(drawn, nvtx=drawn.nvtx.with_columns(**changed))).answers)[asked]

    assert answer() == "yes"
    assert answer(domain=pl.lit("CCCL")).startswith("no: no NVTX range is the program's own (those of CCCL name no")
    assert answer(text=pl.lit("")).startswith("no: no NVTX range is the program's own (they have no name or no length)")
    assert answer(thread=pl.col("thread") + 1).startswith("no: no thread that makes CUDA calls opened an NVTX range;")
    assert dict(examine(draw(NODE)).answers)[asked].startswith("no: no NVTX ranges; ")


def test_the_gravest_note_comes_first() -> None:
    notes = (QualityNote("c", "info", "a limit"), QualityNote("b", "warn", "a loss"), QualityNote("a", "error", "no"))
    examined = examine(replace(draw(NODE), notes=notes))
    assert [note.level for note in examined.notes] == sorted(
        (note.level for note in examined.notes), key=("error", "warn", "info").index
    )
    assert examined.notes[0].code == "a"


def test_a_capture_without_gpu_work_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(draw("api | L\nL = cudaLaunchKernel"), capsys)
    assert "no: no GPU activity was recorded" in text
    assert " ".join(text.split()).count("no GPU activity recorded although 1 API calls were traced: nothing") == 1


def test_the_command_stays_in_one_line_to_be_copied(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = (line for line in told(draw(NODE), capsys).splitlines() if "nsys profile" in line)
    assert line.startswith("To time a step and its gaps without the cost of recording every node: nsys profile ")
    assert line.endswith("--cuda-graph-trace=graph -o capture PROGRAM")
    assert len(line) > 100


def test_no_line_of_a_pipe_ends_in_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    assert not [line for line in told(draw(NODE), capsys).splitlines() if line != line.rstrip()]
