"""The scripts that the pages print, run as they are: the night by cron, and git bisect."""

from __future__ import annotations

import lzma
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import processes

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
GOOD, BAD = "seeded/base_1.graph", "seeded/read.graph"
COMMIT = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder for PATH with the program, and a `mail` that keeps what it is given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script(folder / "bubblefinder", f'exec {sys.executable} -m bubblefinder "$@"')
    script(folder / "mail", f'{{ echo "$*"; cat; }} > "{tmp_path}/mail.$(ls {tmp_path} | grep -c mail)"')
    return folder


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def environment(tools: Path) -> dict[str, str]:
    return {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}


def run(command: str, folder: Path, tools: Path) -> subprocess.CompletedProcess[str]:
    return processes.run(["bash", "-c", command], cwd=folder, env=environment(tools))


def mails(tmp_path: Path) -> list[str]:
    return [path.read_text() for path in sorted(tmp_path.glob("mail.*"))]


def cron(folder: Path) -> str:
    """The page's line as cron runs it in a folder: behind its five fields, an escaped percent sign is one."""
    line = re.search(r"^0 3 \* \* \*  (.*)$", (ROOT / "docs/ci.md").read_text(), re.MULTILINE)
    assert line is not None
    assert not re.search(r"(?<!\\)%", line[1])
    return line[1].replace("\\%", "%").replace("/srv/decode", str(folder))


def test_cron_sends_a_mail_for_every_night_that_is_not_well(
    tmp_path: Path, tools: Path, sample: Callable[[str], Path]
) -> None:
    folder = tmp_path / "decode"
    folder.mkdir()
    (folder / "budget.toml").write_text('version = 1\n[[budget]]\nmetric = "step.duration.p50"\nmax = "2.4 ms"\n')
    good, bad = (lzma.decompress(sample(name).read_bytes()) for name in (GOOD, BAD))
    for name, content in (("good", good), ("bad", bad), ("cut", good[:40_000])):
        (tmp_path / name).write_bytes(content)
    nights = [
        ("cp ../good decode.sqlite", None),
        ("echo no GPU is visible >&2; exit 1", "**Can't tell**: decode.sqlite does not exist."),
        ("cp ../cut decode.sqlite", "**Can't tell**: decode.sqlite is cut short"),
        ("cp ../bad decode.sqlite", "✗ **Fail**: step.duration.p50: 2.47 ms is above 2.40 ms."),
    ]
    for number, (capture, verdict) in enumerate(nights):
        script(folder / "capture.sh", capture)
        night = run(cron(folder), tmp_path, tools)
        assert (night.stdout, night.stderr) == ("", "")
        assert len(mails(tmp_path)) == number
        assert verdict is None or verdict in mails(tmp_path)[-1]
    assert "no GPU is visible" in mails(tmp_path)[0]
    assert mails(tmp_path)[-1].startswith("-s decode: not well team\n")
    assert "**Cause**: the host waits in cudaStreamSynchronize DtoH in decode_step" in mails(tmp_path)[-1]


def test_cron_does_nothing_where_its_folder_is_gone(tmp_path: Path, tools: Path) -> None:
    script(tmp_path / "capture.sh", f"touch {tmp_path}/captured")
    night = run(cron(tmp_path / "nowhere"), tmp_path, tools)
    assert "nowhere" in night.stderr
    assert mails(tmp_path) == []
    assert not (tmp_path / "captured").exists()


@pytest.fixture
def project(tmp_path: Path, sample: Callable[[str], Path]) -> Path:
    """Eight commits: the third doesn't build, the fourth can't be captured, from the sixth on steps are longer."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    script(folder / "build.sh", "test ! -e broken")
    script(folder / "capture.sh", f'echo x >> "{tmp_path}/captured"; cp "$(cat captured_as)" "$1"')
    (folder / "nothing").write_text("no capture")
    for number in range(1, 9):
        slow = sample(BAD if number >= 6 else GOOD)
        (folder / "captured_as").write_text(str("nothing" if number == 4 else slow))
        (folder / "number").write_text(str(number))
        (folder / "broken").unlink(missing_ok=True)
        if number == 3:
            (folder / "broken").touch()
        git(folder, "add", "-A")
        git(folder, *COMMIT, f"commit {number}")
    return folder


def git(folder: Path, *arguments: str) -> str:
    done = processes.run(["git", *arguments], cwd=folder, check=True)
    return done.stdout


def test_git_bisect_finds_the_commit_that_made_steps_longer(
    project: Path, tools: Path, sample: Callable[[str], Path]
) -> None:
    good = " ".join(str(sample(f"seeded/base_{number}.graph")) for number in (1, 2))
    script_ = ROOT / "docs/bisect.sh"
    done = run(f"git bisect start HEAD HEAD~7 && git bisect run {script_} {good}", project, tools)
    assert done.returncode == 0, done.stderr
    assert "is the first bad commit" in done.stdout
    assert "commit 6" in git(project, "log", "-1", "--format=%s", "refs/bisect/bad")


def test_what_can_not_be_told_is_captured_again_and_then_skipped(
    project: Path, tools: Path, sample: Callable[[str], Path], tmp_path: Path
) -> None:
    git(project, "checkout", "-q", "HEAD~4")
    done = run(f"{ROOT / 'docs/bisect.sh'} {sample(GOOD)}", project, tools)
    assert done.returncode == 125
    assert (tmp_path / "captured").read_text() == "x\n" * 3


def test_a_bug_stops_the_bisection_and_condemns_no_commit(
    project: Path, tools: Path, sample: Callable[[str], Path]
) -> None:
    buggy = (
        "from unittest import mock; from bubblefinder.cli.app import main; "
        "mock.patch('bubblefinder.compare.diff.diff', side_effect=ZeroDivisionError).start(); main()"
    )
    script(tools / "bubblefinder", f'exec {sys.executable} -c "{buggy}" "$@"')
    newest = git(project, "rev-parse", "HEAD")
    script_ = ROOT / "docs/bisect.sh"
    done = run(f"git bisect start HEAD HEAD~7 && git bisect run {script_} {sample(GOOD)}", project, tools)
    assert done.returncode != 0
    assert "internal error: ZeroDivisionError" in done.stderr
    assert "is the first bad commit" not in done.stdout
    assert git(project, "rev-parse", "refs/bisect/bad") == newest
    assert len(git(project, "for-each-ref", "refs/bisect/good-*").splitlines()) == 1


@pytest.mark.parametrize("ending", ["exit 127", "exit 126", "kill -9 $$"], ids=["not found", "not run", "killed"])
def test_a_comparison_that_gave_no_answer_stops_the_bisection(
    ending: str, project: Path, tools: Path, sample: Callable[[str], Path]
) -> None:
    """Git takes every code from 1 to 127 but 125 for a bad commit."""
    script(tools / "bubblefinder", ending)
    done = run(f"{ROOT / 'docs/bisect.sh'} {sample(GOOD)}", project, tools)
    assert done.returncode == 128
