"""The one folder that holds all data: a database, uploads that arrive, and a folder a run."""

from __future__ import annotations

import fcntl
import os
import shutil
from typing import IO, TYPE_CHECKING, Final

from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

UPLOAD: Final = "upload"
SCRATCH: Final = "scratch"
REPORT: Final = "report"


class DataFolder:
    """Where things lie. Ids come from the database, never from a request, before they become paths."""

    def __init__(self, root: Path) -> None:
        """Create the folders that are missing, for this user alone."""
        self.root = root
        self.database = root / "runs.db"
        self.incoming = root / "incoming"
        self._runs = root / "runs"
        try:
            for path in (root, self.incoming, self._runs):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"the data folder {root} can't be used: {error.strerror}", hint="name another with --data DIR"
            ) from error

    def run(self, run_id: str) -> Path:
        """Return the folder of a run."""
        return self._runs / run_id

    def upload(self, run_id: str) -> Path:
        """Return the file that was uploaded; it is there until its report is done."""
        return self._runs / run_id / UPLOAD

    def scratch(self, run_id: str) -> Path:
        """Return the folder for the scratch files of a run's jobs."""
        return self._runs / run_id / SCRATCH

    def report(self, run_id: str) -> Path:
        """Return the folder with a run's finished reports."""
        return self._runs / run_id / REPORT

    def adopt(self, run_id: str, received: Path) -> None:
        """Move a file that arrived whole into its run's folder."""
        self.run(run_id).mkdir(mode=0o700)
        received.replace(self.upload(run_id))

    def publish(self, run_id: str, finished: Path) -> None:
        """Put a finished report folder in place, whole."""
        target = self.report(run_id)
        shutil.rmtree(target, ignore_errors=True)
        finished.replace(target)

    def clear(self, run_id: str) -> None:
        """Remove a run's upload and scratch files, and keep its report."""
        self.upload(run_id).unlink(missing_ok=True)
        shutil.rmtree(self.scratch(run_id), ignore_errors=True)

    def delete(self, run_id: str) -> None:
        """Remove every file of a run."""
        shutil.rmtree(self.run(run_id), ignore_errors=True)

    def sweep(self, known: Collection[str], waiting: Collection[str]) -> None:
        """Remove what a killed server left behind: unfinished uploads, and files no run needs."""
        for part in self.incoming.iterdir():
            part.unlink()
        for folder in self._runs.iterdir():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)
            elif folder.name not in waiting:
                self.clear(folder.name)

    def stored_bytes(self) -> int:
        """Return the bytes of all runs on disk."""
        return sum(
            os.stat(os.path.join(where, name), follow_symlinks=False).st_size  # noqa: PTH116, PTH118 - thousands of files
            for where, _, names in os.walk(self._runs)
            for name in names
        )

    def lock(self) -> IO[bytes]:
        """Return an open lock file that keeps other servers away until it is closed.

        Raises:
            UsageError: another server uses this folder.
        """
        file = (self.root / "lock").open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise UsageError(
                f"another bubblefinder server uses {self.root}", hint="stop it, or name another folder with --data DIR"
            ) from error
        return file
