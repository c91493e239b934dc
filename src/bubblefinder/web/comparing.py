"""Comparisons of stored runs, made afresh for every request in a process of their own."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bubblefinder.web.limits import Limits, RefusedError, disk_full
from bubblefinder.web.orders import Comparison
from bubblefinder.web.process import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from bubblefinder.web.folder import DataFolder
    from bubblefinder.web.process import Processes
    from bubblefinder.web.shelf import StoredRun
    from bubblefinder.web.store import Store

GROUP: Final = 20
_AT_ONCE: Final = 2


class Comparer:
    """Compares runs; nothing of a comparison is kept, so that deleting a run deletes all of it."""

    def __init__(self, store: Store, folder: DataFolder, limits: Limits, processes: Processes) -> None:
        self._store = store
        self._folder = folder
        self._limits = limits
        self._processes = processes
        self._free = asyncio.Semaphore(_AT_ONCE)

    def side(self, ids: Sequence[str]) -> list[StoredRun]:
        """Return the runs of one side of a comparison.

        Raises:
            RefusedError: an id is unknown, its report isn't done, or there are none or too many.
        """
        if not 1 <= len(ids) <= GROUP:
            raise RefusedError(
                400,
                f"A comparison needs a base and a head, of 1 to {GROUP} runs each.",
                hint="Tick both in the list of runs.",
            )
        runs = [self._store.get(run_id) for run_id in ids]
        found = [run for run in runs if run is not None]
        if len(found) < len(runs):
            raise RefusedError(404, "There is no run of this id.", hint="It may have been deleted.")
        if any(run.state != "done" for run in found):
            raise RefusedError(409, "A run to compare has no report.", hint="Wait until its state is done.")
        return found

    @asynccontextmanager
    async def compared(self, base: Sequence[StoredRun], head: Sequence[StoredRun]) -> AsyncIterator[Path]:
        """Give a folder with the comparison in every format, which is gone afterwards.

        Raises:
            RefusedError: the runs can't be compared.
        """
        with tempfile.TemporaryDirectory(dir=self._folder.incoming) as out:
            job = Comparison(base=self._reports(base), head=self._reports(head), out=out)
            async with self._free:
                outcome = await Worker(self._limits, self._processes).run("comparison", job, Path(out))
            if outcome.disk_full:
                raise disk_full()
            if outcome.found is None:
                raise RefusedError(422, outcome.error, hint=outcome.hint)
            yield Path(out)

    def _reports(self, runs: Sequence[StoredRun]) -> list[str]:
        return [str(self._folder.report(run.id) / "report.json") for run in runs]
