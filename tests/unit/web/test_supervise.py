from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bubblefinder.web import supervise
from bubblefinder.web.supervise import Supervisor
from tests.web import asynchronous

if TYPE_CHECKING:
    import pytest


@asynchronous
async def test_a_task_that_breaks_is_started_again_counted_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervise, "PAUSES_S", (0.001, 0.002))
    begun = asyncio.Event()
    supervisor, times = Supervisor(), [0]

    async def work() -> None:
        times[0] += 1
        if times[0] <= 4:
            raise ZeroDivisionError(f"time {times[0]}")
        begun.set()
        await asyncio.sleep(60)

    assert supervisor.ailing() == []
    task = asyncio.create_task(supervisor.watch("the work", work))
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (supervisor.failures, supervisor.ailing()) == (4, ["the work"])
    assert all(f"time {number}" in caplog.text for number in range(1, 5))


@asynchronous
async def test_cancelling_ends_the_work_too() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    task = asyncio.create_task(Supervisor().watch("the work", work))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert ended.is_set()
