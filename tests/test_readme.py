"""Runs the README: its commands must work, and the output it shows must be what they print."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.processes import run

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PROGRAM = Path(sys.executable).with_name("bubblefinder")
ELLIPSES = {"", "...", "…"}


@dataclass(frozen=True, slots=True)
class Example:
    command: str
    shown: list[str]


def examples(page: str) -> list[Example]:
    """The commands of a page's console blocks, each with the lines shown below it."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.replace("\\\n", "").splitlines()
            found.append(Example(command, [line.strip() for line in shown if line.strip() not in ELLIPSES]))
    return found


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    (tmp_path / "sample_traces").symlink_to(ROOT / "sample_traces")
    (tmp_path / "demo").mkdir()
    return tmp_path


def test_examples_are_told_from_their_output() -> None:
    page = "text\n```console\n$ make demo\n$ bubblefinder analyze a \\\n  -q\n 12 ms\n…\n```\n"
    assert examples(page) == [Example("make demo", []), Example("bubblefinder analyze a   -q", ["12 ms"])]


def test_make_targets_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = [e.command.split()[1] for e in examples(README.read_text()) if e.command.startswith("make ")]
    assert "demo" in used
    assert set(used) <= targets


def test_coverage_is_measured_of_the_product() -> None:
    """A path behind `--cov` would be measured itself, and every test run."""
    recipes = (ROOT / "Makefile").read_text()
    assert re.search(r"tests/unit --cov$", recipes, re.MULTILINE)
    assert not re.search(r"--cov +[^ )]", recipes)


def test_the_readme_shows_what_its_commands_print(elsewhere: Path) -> None:
    status = 0
    for example in examples(README.read_text()):
        if example.command == "echo $?":
            assert example.shown == [str(status)]
            status = 0
        elif example.command.startswith("bubblefinder "):
            assert status == 0, f"exit {status} before {example.command}"
            arguments = shlex.split(example.command, comments=True)[1:]
            done = run([PROGRAM, *arguments], cwd=elsewhere)
            status, printed = done.returncode, [line.strip() for line in done.stdout.splitlines()]
            assert [line for line in example.shown if line not in printed] == [], example.command + done.stderr
    assert status == 0
