"""Each mode is the recordings that it takes, with what an nsys of that version knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubblefinder.capture import plan as planning
from bubblefinder.capture.plan import Wish, plan
from bubblefinder.errors import UsageError
from bubblefinder.trace.nsys import Nsys

PROGRAM = ("python", "my loop.py")
HELP = """
    --trace --cuda-graph-trace --cpuctxsw --trace-fork-before-exec --sample --cudabacktrace --python-functions-trace
    --capture-range --capture-range-end --delay --duration --force-overwrite --output
"""
NEW = frozenset(HELP.split())


def asked(
    mode: str, known: frozenset[str] | None = None, version: tuple[int, ...] = (2025, 3), **more: object
) -> planning.Plan:
    wish = Wish(PROGRAM, mode, Path("out/decode"), **more)  # type: ignore[arg-type]
    if known is None:
        return plan(wish, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "options_of", lambda _: known)
        return plan(wish, Nsys(Path("/opt/nsys"), None, version))


def test_one_recording_of_the_range_and_its_analysis() -> None:
    found = asked("node")
    (only,) = found.recordings
    assert only.command[:2] == ("nsys", "profile")
    assert only.command[-2:] == PROGRAM
    assert {
        "--trace=cuda,nvtx", "--cuda-graph-trace=node", "--sample=none", "--cpuctxsw=none",
        "--capture-range=cudaProfilerApi", "--capture-range-end=stop", "--output=out/decode",
    } <= set(only.command)  # fmt: skip
    assert found.script() == [
        " ".join(only.command[:-1]) + " 'my loop.py'",
        "nsys export --type sqlite --output out/decode.sqlite out/decode.nsys-rep",
        "bubblefinder analyze out/decode.sqlite",
    ]


def test_both_gives_the_node_capture_its_reference() -> None:
    found = asked("both")
    assert [(one.kind, one.export.name) for one in found.recordings] == [
        ("node", "decode.node.sqlite"),
        ("graph", "decode.graph.sqlite"),
    ]
    assert found.script()[-1].endswith("decode.node.sqlite --reference out/decode.graph.sqlite")


def test_names_gives_the_light_capture_names_of_a_slow_one() -> None:
    found = asked("names")
    light, slow = found.recordings
    assert not any("backtrace" in word or "functions" in word for word in light.command)
    assert {"--cudabacktrace=all:0", "--python-functions-trace=out/decode.functions.json"} <= set(slow.command)
    assert found.script()[-1].endswith("decode.graph.sqlite --names-from out/decode.names.sqlite")


def test_by_time_and_with_os_calls_only_if_asked() -> None:
    (by_time,) = asked("graph", delay_s=30.0, duration_s=2.5, os_calls=True, force=True).recordings
    assert {"--delay=30", "--duration=2.5", "--trace=cuda,nvtx,osrt", "--force-overwrite=true"} <= set(by_time.command)
    assert not any("cudaProfilerApi" in word for word in by_time.command)
    assert not any("osrt" in word or "force" in word for word in asked("graph").recordings[0].command)


def test_options_that_a_version_does_not_know_are_left_out_and_said() -> None:
    old = NEW - {"--cuda-graph-trace", "--python-functions-trace", "--trace-fork-before-exec"}
    found = asked("names", old, (2021, 5))
    assert not any(
        "cuda-graph-trace" in word or "fork" in word for one in found.recordings for word in one.command[:-2]
    )
    assert [sentence.partition(" can't")[0] for sentence in found.lacking if "can't" in sentence] == [
        "Nsight Systems 2021.5"
    ] * 2
    assert any("doesn't export graphs" in sentence for sentence in found.lacking)


def test_the_older_name_of_an_option_is_used_where_the_newer_is_unknown() -> None:
    older = NEW - {"--python-functions-trace"} | {"--python-nvtx-annotations"}
    assert "--python-nvtx-annotations=out/decode.functions.json" in asked("names", older).recordings[1].command


@pytest.mark.parametrize(("version", "fine"), [((2023, 4), False), ((2024, 2), True), ((), True)])
def test_versions_that_drop_whole_graphs_are_told(version: tuple[int, ...], fine: bool) -> None:
    assert (asked("graph", NEW, version).lacking == ()) == fine
    assert asked("node", NEW, version).lacking == ()


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="not a mode"):
        asked("everything")


def test_of_an_nsys_that_does_not_answer_nothing_is_said_to_be_lacking() -> None:
    wish = Wish(PROGRAM, "node", Path("out/decode"))
    silent, none = plan(wish, Nsys(Path("/bin/true"), None, ())), plan(wish, None)
    assert not silent.lacking
    assert silent.recordings[0].command[1:] == none.recordings[0].command[1:]
