"""A program that is told to end does so at once, without a word, and leaves nothing behind."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from bubblefinder.ending import begun, deaf, temporary_folder
from tests.samples import FOLDER

_PROGRAM = """
import importlib, os, signal, sys, weakref
from pathlib import Path
from bubblefinder.ending import begun, end_at_once, end_by_exception, temporary_folder

signal.signal(signal.SIGHUP, signal.SIG_IGN)
end_at_once()
me, number = os.getpid(), int(sys.argv[1])
class Thing: pass
{body}
print("still here", flush=True)
"""


def ended(body: str, number: int, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(body=body), str(number)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"TMPDIR": str(folder)},
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param("os.kill(me, number)", id="plainly"),
        pytest.param(
            "thing = Thing(); seen = weakref.ref(thing, lambda _: os.kill(me, number)); del thing",
            id="where an exception would be lost",
        ),
        pytest.param(
            "try:\n    os.kill(me, number)\nexcept BaseException:\n    pass", id="where an exception would be caught"
        ),
    ],
)
def test_a_program_dies_of_the_signal_without_a_word_and_takes_away_what_it_began(
    body: str, number: int, tmp_path: Path
) -> None:
    inside = "\n".join(f"    {line}" for line in body.splitlines())
    done = ended(f"with temporary_folder() as place:\n    (place / 'part').touch()\n{inside}", number, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")
    assert not list(tmp_path.iterdir())


def test_what_the_caller_had_ignored_stays_ignored(tmp_path: Path) -> None:
    assert ended("os.kill(me, signal.SIGHUP)", 0, tmp_path).stdout == "still here\n"


def test_a_command_that_runs_others_programs_is_ended_by_an_exception(tmp_path: Path) -> None:
    body = "end_by_exception()\ntry:\n    os.kill(me, number)\nexcept KeyboardInterrupt:\n    print('caught')"
    assert ended(body, signal.SIGINT, tmp_path).stdout == "caught\nstill here\n"


def test_what_was_begun_last_is_taken_away_first_even_if_another_cannot_be(tmp_path: Path) -> None:
    body = (
        "told = lambda word: (lambda: print(word, flush=True))\n"
        "with begun(told('first')), begun(Path('/nowhere/at/all').unlink), begun(told('last')):\n"
        "    os.kill(me, number)"
    )
    assert ended(body, signal.SIGTERM, tmp_path).stdout == "last\nfirst\n"


def test_a_tool_that_a_report_is_exported_with_ends_with_the_program(tmp_path: Path) -> None:
    tool = ["sh", "-c", "echo $$ > pid; mv pid tool; echo 50%; exec sleep 60"]
    body = f"""os.chdir({str(tmp_path)!r})
from bubblefinder.trace.nsys import run_tool
run_tool({tool!r}, "export", lambda _: os.kill(me, number))"""
    done = ended(body, signal.SIGINT, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
    state = Path(f"/proc/{int((tmp_path / 'tool').read_text())}/stat")
    for _ in range(100):
        if not state.exists() or state.read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the tool goes on")


def test_in_the_end_nothing_is_left_to_take_away(tmp_path: Path) -> None:
    called = list[int]()
    with begun(lambda: called.append(1)), temporary_folder(tmp_path, ".kept-") as place:
        assert place.parent == tmp_path
        assert place.name.startswith(".kept-")
    assert not called
    assert not place.exists()


@pytest.mark.parametrize("worked_s", [0.3, 0.5, 0.8, 1.2])
def test_an_interrupted_analysis_says_nothing_and_leaves_nothing(worked_s: float) -> None:
    """Whether it is importing, unpacking, analysing or writing by then; once it has worked so long, however slowly.

    Only where the report was written before the signal came is it there, and then it is whole.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        command = [sys.executable, "-m", "bubblefinder", "analyze", str(FOLDER / "sglang/fi.node.sqlite.xz")]
        process = subprocess.Popen(
            [*command, "-o", str(folder / "report.html"), "-q"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"TMPDIR": place},
        )
        while process.poll() is None and _worked_s(process.pid) < worked_s:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
        assert (out, errors) == (b"", b"")
        left = list(folder.iterdir())
        assert process.returncode in ((0, -signal.SIGINT) if left else (-signal.SIGINT,))
        assert all(one.name == "report.html" and one.read_text().rstrip().endswith("</html>") for one in left)


def _worked_s(pid: int) -> float:
    with contextlib.suppress(FileNotFoundError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def test_a_process_begun_by_a_thread_that_is_deaf_never_hears_ctrl_c_and_this_one_does_again() -> None:
    begun_there: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        begun_there.append(subprocess.Popen([sys.executable, "-c", "import json"], stderr=subprocess.PIPE))

    with deaf():
        thread = threading.Thread(target=begin)
        thread.start()
    thread.join()
    begun_there[0].send_signal(signal.SIGINT)
    _, errors = begun_there[0].communicate(timeout=60)
    assert (begun_there[0].returncode, errors) == (0, b"")
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
