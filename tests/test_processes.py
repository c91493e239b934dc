from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.processes import run


def test_what_a_program_leaves_behind_ends_with_it_and_nobody_waits_for_it() -> None:
    begun = time.monotonic()
    done = run(["sh", "-c", "sleep 60 & echo $!; echo said >&2"], check=True)
    assert time.monotonic() - begun < 30
    assert done.stderr == "said\n"
    left = Path("/proc") / done.stdout.strip()
    deadline = time.monotonic() + 30
    while left.exists() and "Z" not in (left / "stat").read_text().split()[2] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left.exists() or (left / "stat").read_text().split()[2] == "Z"


def test_a_program_that_takes_too_long_is_ended_with_all_that_it_started() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run(["sh", "-c", "sleep 60 | sleep 60"], seconds=0.2)


def test_a_program_that_fails_says_so() -> None:
    assert run(["false"]).returncode == 1
    with pytest.raises(subprocess.CalledProcessError):
        run(["false"], env=dict(os.environ), check=True)
