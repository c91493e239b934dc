from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bubblefinder.web.limits import Limits
from bubblefinder.web.orders import Comparison
from bubblefinder.web.process import Processes, Worker
from tests.web import asynchronous

JOB = Comparison(base=[], head=[], out="")


def runs(script: str) -> Processes:
    """A worker that is this script."""
    return Processes((sys.executable, "-c", script))


def says(*lines: str, code: int = 0) -> Processes:
    """A worker that says these lines and ends."""
    return runs(f"import sys; print({chr(10).join(lines)!r}, flush=True); sys.exit({code})")


@asynchronous
async def test_what_the_worker_found_is_the_outcome() -> None:
    outcome = await Worker(Limits(), says('{"stage": "load"}', '{"done": {"a": 1}}')).run("comparison", JOB, Path())
    assert (outcome.found, outcome.error) == ({"a": 1}, "")


@asynchronous
async def test_a_find_counts_only_if_the_worker_ended_well() -> None:
    outcome = await Worker(Limits(), says('{"done": {}}', code=9)).run("comparison", JOB, Path())
    assert outcome.found is None
    assert outcome.error == "The job broke off: an internal error."


@asynchronous
async def test_an_unknown_stage_is_part_of_the_one_before() -> None:
    worker = Worker(Limits(), says('{"stage": "causes"}', '{"stage": "fancy"}', '{"done": {}}'))
    await worker.run("comparison", JOB, Path())
    assert worker.stage == "causes"


@pytest.mark.parametrize("line", ["[1, 2]", "null", "{", "'x' * (2 << 20)", ""])
@asynchronous
async def test_a_worker_that_talks_nonsense_is_ended_and_fails(line: str) -> None:
    said = line if line.startswith("'") else repr(line)
    talk = f"import time; print({said}, flush=True); time.sleep(60)"
    begun = time.monotonic()
    outcome = await Worker(Limits(), runs(talk)).run("comparison", JOB, Path())
    assert outcome.found is None
    assert outcome.hint
    assert time.monotonic() - begun < 20


@asynchronous
async def test_a_worker_that_hears_nothing_is_no_matter() -> None:
    deaf = runs("import os; os.close(0)")
    outcome = await Worker(Limits(), deaf).run("comparison", JOB, Path())
    assert outcome.found is None


@asynchronous
async def test_stopping_before_the_start_stops_it_too() -> None:
    worker = Worker(Limits(), runs("import time; time.sleep(60)"))
    worker.stop()
    begun = time.monotonic()
    await worker.run("comparison", JOB, Path())
    assert time.monotonic() - begun < 20


@asynchronous
async def test_a_cancelled_wait_leaves_no_process() -> None:
    worker = Worker(Limits(), runs("import time; time.sleep(60)"))
    task = asyncio.create_task(worker.run("comparison", JOB, Path()))
    while worker._process is None:
        await asyncio.sleep(0.01)
    pid = worker._process.pid
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path(f"/proc/{pid}").exists()


@asynchronous
async def test_a_small_upload_may_not_take_as_long_as_the_largest() -> None:
    limits = Limits(job_s=10_000)
    script = "import json, time; print(json.dumps({'stage': 'load', 'bytes': 300 << 20}), flush=True); time.sleep(60)"
    worker = Worker(limits, runs(script))
    task = asyncio.create_task(worker.run("comparison", JOB, Path(), size_bytes=1000))
    await asyncio.sleep(0)
    while worker.stage != "load":
        assert worker._allowed.seconds < 200
        await asyncio.sleep(0.01)
    assert 1_000 < worker._allowed.seconds < 10_000
    assert worker._allowed.memory_bytes <= limits.job_bytes
    worker.stop()
    await task


@asynchronous
async def test_a_job_under_which_the_disk_fills_up_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(Path())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))
    outcome = await Worker(Limits(), runs("import time; time.sleep(60)")).run("comparison", JOB, Path())
    assert outcome.disk_full


@asynchronous
async def test_out_of_processor_time_is_said() -> None:
    script = "import os, signal; os.kill(os.getpid(), signal.SIGXCPU)"
    outcome = await Worker(Limits(), runs(script)).run("comparison", JOB, Path())
    assert "took longer" in outcome.error


@asynchronous
async def test_a_worker_that_something_else_kills_is_not_taken_for_damage() -> None:
    script = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    outcome = await Worker(Limits(), runs(script)).run("comparison", JOB, Path())
    assert "something killed it" in outcome.error


JOBS = """
import json, os, signal, sys
while fork := os.fork():
    code = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
    if code == 70:
        sys.exit(code)
    print(json.dumps({"ended": code}), flush=True)
print(json.dumps({"pid": os.getpid()}), flush=True)
line = sys.stdin.readline()
if not line:
    sys.exit(70)
if "killed" in line:
    os.kill(os.getpid(), signal.SIGKILL)
if "slow" in line:
    sys.stdin.read()
    sys.exit(70)
print(json.dumps({"done": {"pid": os.getpid(), "parent": os.getppid()}}), flush=True)
"""
"""A worker that does one job after the other, as the real one does."""


async def ordered(processes: Processes, what: str = "") -> dict[str, Any]:
    job = Comparison(base=[], head=[], out=what)
    found = (await Worker(Limits(), processes).run("comparison", job, Path())).found
    return dict(found or {})


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@asynchronous
async def test_a_process_does_the_next_job_too_and_each_job_is_a_process_of_its_own() -> None:
    processes = runs(JOBS)
    first, second = await ordered(processes), await ordered(processes)
    assert first["parent"] == second["parent"]
    assert first["pid"] != second["pid"]
    assert not is_there(first["pid"])
    await processes.let_go()
    assert not is_there(first["parent"])


@asynchronous
async def test_no_more_processes_are_kept_than_are_wanted() -> None:
    processes = runs(JOBS)
    found = await asyncio.gather(*(ordered(processes) for _ in range(3)))
    parents = {one["parent"] for one in found}
    assert len(parents) == 3
    assert [is_there(parent) for parent in parents].count(True) == processes.kept == 1
    await processes.let_go()


@asynchronous
async def test_after_a_job_that_was_killed_or_stopped_comes_a_process_that_heard_nothing_of_it() -> None:
    processes = runs(JOBS)
    before = await ordered(processes)
    assert await ordered(processes, "killed") == {}
    assert not is_there(before["parent"])
    worker = Worker(Limits(), processes)
    slow = asyncio.create_task(worker.run("comparison", Comparison(base=[], head=[], out="slow"), Path()))
    while worker._pid is None:
        await asyncio.sleep(0.01)
    worker.stop()
    assert (await slow).found is None
    assert not is_there(worker._pid)
    assert (await ordered(processes))["parent"] != before["parent"]
    await processes.let_go()


@asynchronous
async def test_a_process_that_died_while_it_was_kept_is_not_given_a_job() -> None:
    processes = runs(JOBS)
    before = await ordered(processes)
    os.kill(before["parent"], signal.SIGKILL)
    while is_there(before["parent"]):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert (await ordered(processes))["parent"] != before["parent"]
    await processes.let_go()
