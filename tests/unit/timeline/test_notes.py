from __future__ import annotations

from dataclasses import replace

import pytest

from bubblefinder.timeline.build import build_timeline
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.model import QualityNote


def notes(picture: str) -> dict[str, QualityNote]:
    return {note.code: note for note in build_timeline(draw(picture)).notes}


@pytest.mark.parametrize(
    ("picture", "code", "level"),
    [
        ("api | G\ngpu0 | .a\nG = graph a", "capture-mode-node", "info"),
        ("api | G\ngpu0 | .G\nG = graph", "capture-mode-graph", "info"),
        ("api | GH\ngpu0 | .GHH\nG = graph\nH = graph a\n", "capture-mode-mixed", "warn"),
        ("api | K\ngpu0 | .K", "capture-mode-none", "info"),
        ("api | KG\ngpu0 | .K\nG = cudaGraphLaunch", "capture-mode-unseen", "error"),
    ],
)
def test_the_mode_is_the_first_note(picture: str, code: str, level: str) -> None:
    picture = picture.replace(".GHH", ".Gaa")
    first = build_timeline(draw(picture)).notes[0]
    assert (first.code, first.level) == (code, level)


def test_lost_launches_are_counted() -> None:
    found = notes("api | AX.B\ngpu0 | .AA.B\nX = cudaLaunchKernel")
    assert found["launches-without-work"].count == 1
    assert "1 of 3" in found["launches-without-work"].message


def test_copies_of_which_not_one_is_on_record_are_counted() -> None:
    assert notes("api | AXXB\ngpu0 | .A.B\nX = cudaMemcpyAsync_v3020")["copies-without-work"].count == 1
    one = notes("api | AXCB\ngpu0 | .ACB\nX = cudaMemcpyAsync_v3020\nC = copy DtoH 8")
    assert "copies-without-work" not in one


def test_a_complete_capture_has_no_such_note() -> None:
    found = notes("api | A..B\ngpu0 | .AA.B")
    assert not {"launches-without-work", "work-without-launches", "starts-before-launch"} & found.keys()


def test_in_unseen_mode_lost_launches_are_no_separate_note() -> None:
    assert "launches-without-work" not in notes("api | KG\ngpu0 | .K\nG = cudaGraphLaunch")


@pytest.mark.parametrize(("known", "level"), [(1, "warn"), (20, "info")])
def test_work_without_launches_is_counted_and_grave_if_it_is_much(known: int, level: str) -> None:
    letters = "ABCDEFGHIJKLMNOPQRST"[:known]
    found = notes(f"api | {letters}\ngpu0 | .{letters}x")["work-without-launches"]
    assert (found.count, found.level) == (1, level)


@pytest.mark.parametrize(("early", "level"), [("..B", "info"), ("B..", "warn")])
def test_operations_before_their_own_launch_are_clocks_that_disagree(early: str, level: str) -> None:
    # One character is 50 us: one early is a conversion error, three are not.
    picture = f"api | ...B\ngpu0 | {early}"
    (note,) = (n for n in build_timeline(draw(picture, us_per_char=50)).notes if n.code == "starts-before-launch")
    assert (note.count, note.level) == (1, level)


def test_a_node_capture_without_any_eager_kernel_is_mentioned() -> None:
    assert "no-eager-kernels" in notes("api | G\ngpu0 | .a\nG = graph a")
    assert "no-eager-kernels" not in notes("api | GK\ngpu0 | .aK\nG = graph a")


@pytest.mark.parametrize(
    ("picture", "code"),
    [("api | G\ngpu0 | .a\nG = graph a", "no-eager-kernels"), ("api | K\ngpu0 | .K", "capture-mode-none")],
)
def test_what_is_absent_is_not_counted(picture: str, code: str) -> None:
    assert notes(picture)[code].count is None


def test_processes_that_share_a_gpu_are_noticed() -> None:
    picture = """
    p1 api  | K.....
    p1 gpu0 | .KK...
    p2 api  | ...L..
    p2 gpu0 | ....L.
    """
    (note,) = (n for n in build_timeline(draw(picture, us_per_char=50)).notes if n.code == "shared-gpu")
    assert (note.level, note.count) == ("warn", 2)


@pytest.mark.parametrize(
    ("picture", "level"),
    [
        ("api | AB\ngpu0 | .AB", "info"),
        ("api | ABL\ngpu0 | .AB\nL = cudaLaunchKernel_v7000", "warn"),
        ("api | A\ngpu0 | .AB", "warn"),
        ("gpu0 | .AB", "warn"),
    ],
    ids=["whole", "a launch without work", "work without a launch", "no calls"],
)
def test_records_that_prove_complete_are_not_doubted(picture: str, level: str) -> None:
    trace = draw(picture)
    doubts = {
        "Not all CUDA events might have been collected.": "events-incomplete",
        "CUDA profiling might have not been started correctly.": "diagnostic",
        "Not all NVTX events might have been collected.": "events-incomplete",
    }
    trace = replace(trace, notes=tuple(QualityNote(code, "warn", text) for text, code in doubts.items()))
    assert [note.level for note in build_timeline(trace).trace.notes] == [level, level, "warn"]
