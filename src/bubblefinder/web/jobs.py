"""The queue: runs are worked off in order, some at a time, and settled in the store."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sqlite3
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bubblefinder.web import supervise
from bubblefinder.web.folder import DataFolder, remove
from bubblefinder.web.orders import FINISHED, Upload
from bubblefinder.web.process import Outcome, Worker
from bubblefinder.web.store import ATTEMPTS, Store, is_passing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bubblefinder.web.limits import Limits
    from bubblefinder.web.process import Processes
    from bubblefinder.web.shelf import StoredRun
    from bubblefinder.web.supervise import Supervisor

_NO_REPORT: Final = Outcome(error="The job ended with no report.", hint="Upload the trace again; please report it.")
_DISK_FULL: Final = Outcome(
    error="The server's disk was full while it worked on this trace.", hint="Upload it again once there is room."
)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Attempt:
    """A job at work: its worker, when it began (of the monotonic clock), and whether its run is to be forgotten."""

    worker: Worker
    begun_s: float = field(default_factory=time.monotonic)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    abandoned: bool = False

    @property
    def elapsed_s(self) -> float:
        """For how long it has been at work."""
        return time.monotonic() - self.begun_s


class Jobs:
    """Works off the queue, `limits.jobs` runs at a time, once `run` is awaited.

    Whatever happens to a worker, to the disk or to the server, a run is queued, running, or settled: the store
    says so before and after each job, and the folder of reports is renamed into place whole.
    """

    def __init__(self, store: Store, folder: DataFolder, limits: Limits, processes: Processes) -> None:
        self._store = store
        self._folder = folder
        self._limits = limits
        self._processes = processes
        self._attempts: dict[str, Attempt] = {}
        self._added = asyncio.Condition()
        self.without_room = False

    async def run(self, supervisor: Supervisor) -> None:
        """Work until cancelled; jobs that are running then go back to the queue."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._limits.jobs):
                group.create_task(supervisor.watch(f"job slot {number + 1}", self._work_off))

    async def added(self) -> None:
        """Tell an idle slot that a run was added to the queue."""
        async with self._added:
            self._added.notify()

    @property
    def attempts(self) -> Mapping[str, Attempt]:
        """The jobs at work, by run."""
        return self._attempts

    async def cancel(self, run_id: str) -> bool:
        """Stop a run that is queued or running; return whether it was, once nothing touches its files."""
        cancelled = self._store.finish(run_id, "cancelled")
        if attempt := self._attempts.get(run_id):
            attempt.worker.stop()
            await attempt.settled.wait()
        elif cancelled:
            self._folder.clear(run_id)
        return cancelled

    async def abandon(self, run_id: str) -> None:
        """Stop a run's job without a word to the store; return once nothing touches its files."""
        if attempt := self._attempts.get(run_id):
            attempt.abandoned = True
            attempt.worker.stop()
            await attempt.settled.wait()

    async def _work_off(self) -> None:
        self._store.recover(self._attempts.keys())
        while True:
            run = await self._next()
            attempt = self._attempts[run.id] = Attempt(Worker(self._limits, self._processes))
            try:
                job = self._analysis(run)
                outcome = await attempt.worker.run("analysis", job, self._folder.root, run.size_bytes)
                await self._settle(run, attempt, outcome)
            except asyncio.CancelledError:
                self._give_back(run)
                raise
            finally:
                del self._attempts[run.id]
                attempt.settled.set()

    async def _next(self) -> StoredRun:
        """Claim a run, once there is one and room on the disk to work on it."""
        while True:
            async with self._added:
                while not self._store.waiting():
                    await self._added.wait()
            self.without_room = self._folder.free_bytes() < self._limits.spare_bytes
            if self.without_room:
                await asyncio.sleep(supervise.PAUSES_S[0])
            elif run := self._store.claim():
                return run

    def _give_back(self, run: StoredRun) -> None:
        """Requeue the run of a stopping server; if that fails, its next start does it."""
        try:
            self._store.requeue(run.id, counted=False)
        except sqlite3.Error as error:
            _log.warning("a run could not be put back in the queue: %s", error)

    def _analysis(self, run: StoredRun) -> Upload:
        scratch = self._folder.scratch(run.id)
        remove(scratch)
        return Upload(
            upload=str(self._folder.upload(run.id)),
            scratch=str(scratch / str(run.attempts)),
            name=run.name,
            label=run.label,
            commit=run.commit,
            unpacked_bytes=max(min(self._limits.unpacked_bytes, self._room()), 1),
            archive_files=self._limits.archive_files,
        )

    def _room(self) -> int:
        """Return what a job may write: its part of what the folder and the disk have left."""
        stored = self._limits.disk_bytes - self._folder.stored_bytes()
        free = self._folder.free_bytes() - self._limits.spare_bytes
        return min(stored, free) // self._limits.jobs

    async def _settle(self, run: StoredRun, attempt: Attempt, outcome: Outcome) -> None:
        """Write down how a job ended, as often as it takes while the disk is full or fails."""
        for pause in itertools.chain(supervise.PAUSES_S, itertools.repeat(supervise.PAUSES_S[-1])):
            try:
                self._write_down(run, attempt, outcome)
            except sqlite3.Error as error:
                if not is_passing(error):
                    raise
                _log.warning("how a job ended can't be written down, again in %s s: %s", pause, error)
            except OSError as error:
                _log.warning("a report can't be put in its place, again in %s s: %s", pause, error)
            else:
                return
            await asyncio.sleep(pause)

    def _write_down(self, run: StoredRun, attempt: Attempt, outcome: Outcome) -> None:
        current = self._store.get(run.id)
        if current is not None and current.state == "running" and not attempt.abandoned:
            if outcome.disk_full and run.attempts < ATTEMPTS:
                remove(self._folder.scratch(run.id))
                self._store.requeue(run.id, counted=True)
                return
            finished = self._folder.scratch(run.id) / str(run.attempts) / FINISHED
            published = self._folder.report(run.id)
            if outcome.found is not None and not finished.is_dir() and not published.is_dir():
                outcome = _NO_REPORT
            if outcome.found is None:
                told = _DISK_FULL if outcome.disk_full else outcome
                self._store.finish(run.id, "failed", error=told.error, hint=told.hint)
            else:
                if finished.is_dir():
                    self._folder.publish(run.id, finished)
                self._store.finish(run.id, "done", **outcome.found)
        self._folder.clear(run.id)
