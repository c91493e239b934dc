"""The one folder that holds all data: a database, uploads that arrive, and a folder a run."""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import shutil
from typing import IO, TYPE_CHECKING, Final

from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

UPLOAD: Final = "upload"
SCRATCH: Final = "scratch"
REPORT: Final = "report"
_RESERVE_BYTES: Final = 4 << 20
"""Room enough for the journal of a database of 100,000 runs, so that rows can be deleted from a full disk."""
_log = logging.getLogger(__name__)


class DataFolder:
    """Where things lie. Ids come from the database, never from a request, before they become paths.

    The size of a run's folder is known from the last look at it; only those that something may write to are looked
    at again when the bytes are counted.
    """

    def __init__(self, root: Path) -> None:
        """Create the folders that are missing, for this user alone."""
        self.root = root
        self.database = root / "runs.db"
        self.incoming = root / "incoming"
        self._runs = root / "runs"
        self._reserve = root / "reserve"
        self._sizes: dict[str, int] = {}
        self._in_work: set[str] = set()
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
        self._in_work.add(run_id)

    def publish(self, run_id: str, finished: Path) -> None:
        """Put a finished report folder in place, whole."""
        target = self.report(run_id)
        discarded = self._discarded()
        if target.exists():
            target.replace(discarded)
        finished.replace(target)
        remove(discarded)

    def clear(self, run_id: str) -> None:
        """Remove a run's upload and scratch files, and keep its report; nothing writes to it from then on."""
        remove(self.upload(run_id))
        remove(self.scratch(run_id))
        self._in_work.discard(run_id)
        if self.run(run_id).exists():
            self._sizes[run_id] = _bytes_in(self.run(run_id))

    def delete(self, run_id: str) -> None:
        """Remove every file of a run; it is gone from its place at once, however long the files take."""
        self._in_work.discard(run_id)
        self._sizes.pop(run_id, None)
        if self.run(run_id).exists():
            discarded = self._discarded()
            self.run(run_id).replace(discarded)
            remove(discarded)

    def sweep(self, known: Collection[str], waiting: Collection[str]) -> None:
        """Remove what a killed server left behind: unfinished uploads, and files no run needs.

        A report that no run knows is left alone: only a lost database leaves one.
        """
        for part in self.incoming.iterdir():
            remove(part)
        for place in self._runs.iterdir():
            if place.name in waiting:
                self._in_work.add(place.name)
            elif place.name in known or (place / REPORT).exists():
                self.clear(place.name)
            else:
                remove(place)
            if place.name not in known and place.exists():
                _log.warning("%s holds a report that the database doesn't know", place)

    def stored_bytes(self) -> int:
        """Return the bytes of all runs on disk."""
        return sum(self._sizes.values()) + sum(_bytes_in(self.run(run_id)) for run_id in self._in_work)

    def free_bytes(self) -> int:
        """Return the bytes that the disk has left."""
        return shutil.disk_usage(self.root).free

    def keep_reserve(self) -> None:
        """Take room on the disk that only bookkeeping may use, if there is any to take."""
        if not self._reserve.exists():
            try:
                with self._reserve.open("xb") as file:
                    os.posix_fallocate(file.fileno(), 0, _RESERVE_BYTES)
            except OSError as error:
                _log.warning("no room can be kept for bookkeeping: %s", error.strerror)
                remove(self._reserve)

    def release_reserve(self) -> bool:
        """Give the kept room back; return whether there was any."""
        there = self._reserve.exists()
        remove(self._reserve)
        return there

    def _discarded(self) -> Path:
        """Return a place from which the next sweep removes what is left."""
        return self.incoming / f"discarded-{secrets.token_hex(8)}"

    def lock(self) -> IO[bytes]:
        """Return an open lock file that keeps other servers away until it is closed.

        Raises:
            UsageError: another server uses this folder.
        """
        place = self.root / "lock"
        try:
            file = place.open("ab")
        except OSError as error:
            raise UsageError(
                f"the lock {place} can't be opened: {error.strerror}", hint="remove it, or mend its permissions"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise UsageError(
                f"another bubblefinder server uses {self.root}", hint="stop it, or name another folder with --data DIR"
            ) from error
        return file


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all it holds, if it is there; one that can't be removed is logged."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except FileNotFoundError:
        return
    except OSError as error:
        _log.warning("%s can't be removed: %s", path, error.strerror)


def _bytes_in(folder: Path) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(where, name), follow_symlinks=False).st_size  # noqa: PTH116, PTH118 - many
            except FileNotFoundError:
                continue
    return total
