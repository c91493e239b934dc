"""Large blocks go back to the system when they are freed, and objects that stay are not looked through again."""

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


ENDING = """
import atexit, gc
from bubblefinder.memory import collect_seldom
atexit.register(lambda: print(gc.get_freeze_count(), gc.get_count()[0]))
rounds = gc.get_stats()[0]["collections"]
collect_seldom()
kept = [[] for _ in range(40_000)]
print(gc.get_stats()[0]["collections"] - rounds)
"""


def test_objects_that_stay_are_not_looked_through_again_and_again() -> None:
    during, frozen, young = run([sys.executable, "-c", ENDING], check=True).stdout.split()
    assert int(during) <= 1
    assert int(frozen) > 40_000
    assert int(young) < 1_000
