"""The queue: runs are worked off in order, some at a time, and settled in the store."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bubblefinder.web.process import WORKER, Outcome, Worker
from bubblefinder.web.worker import FINISHED, Upload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.web.folder import DataFolder
    from bubblefinder.web.limits import Limits
    from bubblefinder.web.store import Store, StoredRun


@dataclass(slots=True)
class _Attempt:
    worker: Worker
    settled: asyncio.Event = field(default_factory=asyncio.Event)


class Jobs:
    """Works off the queue, `limits.jobs` runs at a time.

    Whatever happens to a worker or to the server, a run is queued, running, or settled: the store
    says so before and after each job, and the folder of reports is renamed into place whole.
    """

    def __init__(self, store: Store, folder: DataFolder, limits: Limits, worker: Sequence[str] = WORKER) -> None:
        """Prepare the queue; nothing runs before `run`."""
        self._store = store
        self._folder = folder
        self._limits = limits
        self._worker = worker
        self._attempts: dict[str, _Attempt] = {}
        self._added = asyncio.Condition()

    async def run(self) -> None:
        """Work until cancelled; jobs that are running then go back to the queue."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._limits.jobs):
                group.create_task(self._work_off())

    async def added(self) -> None:
        """Tell an idle slot that a run was added to the queue."""
        async with self._added:
            self._added.notify()

    def stage(self, run_id: str) -> str | None:
        """Return what a running job is at, or null."""
        attempt = self._attempts.get(run_id)
        return (attempt.worker.stage or None) if attempt else None

    async def cancel(self, run_id: str) -> bool:
        """Stop a run that is queued or running; return whether it was, once nothing touches its files."""
        cancelled = self._store.finish(run_id, "cancelled")
        if attempt := self._attempts.get(run_id):
            attempt.worker.stop()
            await attempt.settled.wait()
        elif cancelled:
            self._folder.clear(run_id)
        return cancelled

    async def _work_off(self) -> None:
        while True:
            async with self._added:
                while (run := self._store.claim()) is None:
                    await self._added.wait()
            attempt = self._attempts[run.id] = _Attempt(Worker(self._limits, self._worker))
            try:
                self._settle(run, await attempt.worker.run("analysis", self._analysis(run)))
            except asyncio.CancelledError:
                self._store.requeue(run.id)
                raise
            finally:
                del self._attempts[run.id]
                attempt.settled.set()

    def _analysis(self, run: StoredRun) -> Upload:
        scratch = self._folder.scratch(run.id)
        shutil.rmtree(scratch, ignore_errors=True)
        left = self._limits.disk_bytes - self._folder.stored_bytes()
        return Upload(
            upload=str(self._folder.upload(run.id)),
            scratch=str(scratch / str(run.attempts)),
            name=run.name,
            label=run.label,
            commit=run.commit,
            unpacked_bytes=max(min(self._limits.unpacked_bytes, left), 1),
            archive_files=self._limits.archive_files,
        )

    def _settle(self, run: StoredRun, outcome: Outcome) -> None:
        current = self._store.get(run.id)
        if current is not None and current.state == "running":
            if outcome.found is None:
                self._store.finish(run.id, "failed", error=outcome.error, hint=outcome.hint)
            else:
                self._folder.publish(run.id, self._folder.scratch(run.id) / str(run.attempts) / FINISHED)
                self._store.finish(run.id, "done", **outcome.found)
        self._folder.clear(run.id)
