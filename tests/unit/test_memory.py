"""Large blocks go back to the system when they are freed."""

from __future__ import annotations

import sys

from tests.processes import run

PROGRAM = """
from bubblefinder.memory import give_back_early
{call}
import numpy as np

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

arrays = [np.ones(5_000_000) for _ in range(8)]
before = resident()
arrays = arrays[-1:]
print(before - resident())
"""


def test_freed_arrays_leave_the_process() -> None:
    done = run([sys.executable, "-c", PROGRAM.format(call="give_back_early()")], check=True)
    assert int(done.stdout) > 7 * 38_000_000
