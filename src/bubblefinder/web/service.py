"""What the routes share: the store, the queue, and what keeps the data folder in order."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final

from bubblefinder.web.comparing import Comparer
from bubblefinder.web.folder import DataFolder
from bubblefinder.web.guesses import Guesses
from bubblefinder.web.jobs import Jobs
from bubblefinder.web.limits import Limits, RefusedError, checked_token
from bubblefinder.web.pieces import Kept, Pieces
from bubblefinder.web.process import WORKER, Processes
from bubblefinder.web.store import Store
from bubblefinder.web.supervise import Supervisor
from bubblefinder.web.uploads import Intake

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from starlette.requests import Request

    from bubblefinder.web.shelf import StoredRun

_ANSWERS: Final = 128
"""Answers that are kept whole."""
_TIDY_S: Final = 600


class Service:
    """The server's state. It owns the data folder from start to end."""

    def __init__(self, root: Path, limits: Limits, *, token: str | None = None, worker: Sequence[str] = WORKER) -> None:
        """Open the data folder and put right what a killed server left.

        Raises:
            UsageError: the folder can't be used, its database is damaged, or another server uses it.
        """
        self.begun_s = time.monotonic()
        self.limits = limits
        self.token = checked_token(token)
        self.guesses = Guesses()
        self.folder = DataFolder(root)
        with ExitStack() as held:
            held.enter_context(self.folder.lock())
            self.store = Store(self.folder.database, self.folder.release_reserve)
            held.callback(self.store.close)
            self.store.recover()
            self.folder.sweep(self.store.ids(), self.store.ids("queued"))
            self.folder.keep_reserve()
            self._held = held.pop_all()
        self.intake = Intake(self.store, self.folder, limits)
        self.processes = Processes(worker, limits.jobs)
        self.jobs = Jobs(self.store, self.folder, limits, self.processes)
        self.comparer = Comparer(self.store, self.folder, limits, self.processes)
        self.supervisor = Supervisor()
        self.answers = Kept(_ANSWERS)
        self.pieces = Pieces()

    @asynccontextmanager
    async def lifespan(self, _app: object) -> AsyncIterator[None]:
        """Work off the queue and tidy up while the server runs."""
        tasks = [
            asyncio.create_task(self.jobs.run(self.supervisor)),
            asyncio.create_task(self.supervisor.watch("the deletion of old runs", self._tidy)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.processes.let_go()
            self._held.close()

    def run(self, run_id: str) -> StoredRun:
        """Return a run.

        Raises:
            RefusedError: there is none of this id.
        """
        run = self.store.get(run_id)
        if run is None:
            raise RefusedError(404, "There is no run at this address.", hint="It may have been deleted.")
        return run

    def finished(self, run_id: str) -> StoredRun:
        """Return a run whose report is done.

        Raises:
            RefusedError: there is none of this id, or it has no report.
        """
        run = self.run(run_id)
        if run.state != "done":
            raise RefusedError(409, f"This run has no report: it is {run.state}.", hint="Ask for its state first.")
        return run

    def report_file(self, run: StoredRun, name: str) -> Path:
        """Return a file or folder of a finished report.

        Raises:
            RefusedError: it is gone from the disk.
        """
        path = self.folder.report(run.id) / name
        if not path.exists():
            raise damaged_report()
        return path

    async def delete(self, run_id: str) -> None:
        """Stop a run's job and delete all that is stored of it: the files first, which makes room for the rest."""
        await self.jobs.abandon(run_id)
        self.folder.delete(run_id)
        self.store.delete(run_id)
        self.folder.keep_reserve()

    async def _tidy(self) -> None:
        while True:
            for run_id in self.store.older_than(time.time() - self.limits.keep_s):
                await self.delete(run_id)
            self.folder.keep_reserve()
            await self.processes.let_go()
            await asyncio.sleep(_TIDY_S)


def damaged_report() -> RefusedError:
    """Return the refusal of a report whose files are gone or damaged."""
    return RefusedError(
        410, "Files of this report are gone from the server's disk, or damaged.", hint="Upload the trace again."
    )


def service(request: Request) -> Service:
    """Return the service that a request's application runs on."""
    found: Service = request.app.state.service
    return found
