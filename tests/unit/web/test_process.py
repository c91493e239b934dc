from __future__ import annotations

import asyncio
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bubblefinder.web.limits import Limits
from bubblefinder.web.process import Worker
from bubblefinder.web.worker import Comparison
from tests.web import asynchronous

if TYPE_CHECKING:
    from collections.abc import Sequence

JOB = Comparison(base=[], head=[], out="")


def says(*lines: str, code: int = 0) -> Sequence[str]:
    """A worker that says these lines and ends."""
    return (sys.executable, "-c", f"import sys; print({chr(10).join(lines)!r}, flush=True); sys.exit({code})")


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
    outcome = await Worker(Limits(), (sys.executable, "-c", talk)).run("comparison", JOB, Path())
    assert outcome.found is None
    assert outcome.hint
    assert time.monotonic() - begun < 20


@asynchronous
async def test_a_worker_that_hears_nothing_is_no_matter() -> None:
    deaf = (sys.executable, "-c", "import os; os.close(0)")
    outcome = await Worker(Limits(), deaf).run("comparison", JOB, Path())
    assert outcome.found is None


@asynchronous
async def test_stopping_before_the_start_stops_it_too() -> None:
    worker = Worker(Limits(), (sys.executable, "-c", "import time; time.sleep(60)"))
    worker.stop()
    begun = time.monotonic()
    await worker.run("comparison", JOB, Path())
    assert time.monotonic() - begun < 20


@asynchronous
async def test_a_cancelled_wait_leaves_no_process() -> None:
    worker = Worker(Limits(), (sys.executable, "-c", "import time; time.sleep(60)"))
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
    worker = Worker(limits, (sys.executable, "-c", script))
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
    outcome = await Worker(Limits(), (sys.executable, "-c", "import time; time.sleep(60)")).run(
        "comparison", JOB, Path()
    )
    assert outcome.disk_full


@asynchronous
async def test_out_of_processor_time_is_said() -> None:
    script = "import os, signal; os.kill(os.getpid(), signal.SIGXCPU)"
    outcome = await Worker(Limits(), (sys.executable, "-c", script)).run("comparison", JOB, Path())
    assert "took longer" in outcome.error


@asynchronous
async def test_a_worker_that_something_else_kills_is_not_taken_for_damage() -> None:
    script = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    outcome = await Worker(Limits(), (sys.executable, "-c", script)).run("comparison", JOB, Path())
    assert "something killed it" in outcome.error
