"""Receives files: streamed to disk, counted as they come, and kept only if they arrive whole."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from bubblefinder.units import printable
from bubblefinder.web.archive import HEAD_BYTES, check_kind, kind_of
from bubblefinder.web.limits import Limits, RefusedError, disk_full, size
from bubblefinder.web.shelf import StoredRun
from bubblefinder.web.store import Store, new_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from bubblefinder.web.folder import DataFolder

_BUFFER_BYTES: Final = 1 << 20
_NAME_CHARACTERS: Final = 120
LABEL_CHARACTERS: Final = 200
NOTE_CHARACTERS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the sender says about an upload; all of it is only ever shown."""

    name: str
    label: str | None = None
    commit: str | None = None
    baseline: str | None = None


@dataclass(slots=True)
class Incoming:
    """A file that is arriving."""

    path: Path
    file: IO[bytes]
    size_bytes: int = 0
    head: bytes = b""
    buffer: bytearray = field(default_factory=bytearray)

    async def write(self, chunk: bytes) -> None:
        """Take in a piece, and write in pieces of a MiB, off the event loop."""
        self.head = (self.head + chunk[:HEAD_BYTES])[:HEAD_BYTES] if len(self.head) < HEAD_BYTES else self.head
        self.size_bytes += len(chunk)
        self.buffer += chunk
        if len(self.buffer) >= _BUFFER_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Write what is buffered."""
        piece, self.buffer = self.buffer, bytearray()
        try:
            await run_in_threadpool(self.file.write, piece)
        except OSError as error:
            raise disk_full() from error


class Intake:
    """Lets files in while there is room for them."""

    def __init__(self, store: Store, folder: DataFolder, limits: Limits) -> None:
        self._store = store
        self._folder = folder
        self._limits = limits
        self._arriving: set[Path] = set()

    @contextmanager
    def open(self) -> Iterator[Incoming]:
        """Give a file to write to, which is gone afterwards unless it was adopted."""
        if self._store.waiting() + len(self._arriving) >= self._limits.waiting:
            raise RefusedError(503, "The queue is full.", hint="Try again once some jobs have finished.")
        path = self._folder.incoming / secrets.token_hex(16)
        self._arriving.add(path)
        try:
            with path.open("xb", buffering=0) as file:
                yield Incoming(path, file)
        finally:
            self._arriving.discard(path)
            path.unlink(missing_ok=True)

    async def receive(self, chunks: AsyncIterator[bytes], wanted: Wanted, announced: str | None) -> StoredRun:
        """Store a raw body as a new run and return it.

        `announced` is the Content-Length, used only to refuse early.

        Raises:
            RefusedError: a limit was met, or the file is no trace.
        """
        if announced and announced.isdecimal() and int(announced) > self._limits.upload_bytes:
            raise self._too_long()
        self.check(wanted)
        with self.open() as incoming:
            room = self.room()
            try:
                async for chunk in chunks:
                    await self.take(incoming, chunk, room)
            except ClientDisconnect as error:
                raise RefusedError(400, "The upload was broken off.", hint="Upload the file again.") from error
            return await self.keep(incoming, wanted)

    async def take(self, incoming: Incoming, chunk: bytes, room: int) -> None:
        """Write a piece of an upload, unless it passes the limit or the room on disk."""
        await incoming.write(chunk)
        if incoming.size_bytes > self._limits.upload_bytes:
            raise self._too_long()
        if incoming.size_bytes > room:
            raise self._no_room() if self._folder.free_bytes() > self._limits.spare_bytes else disk_full()

    async def keep(self, incoming: Incoming, wanted: Wanted) -> StoredRun:
        """Make a run of a file that arrived whole."""
        await incoming.flush()
        kind = kind_of(incoming.head, wanted.name)
        check_kind(kind, incoming.size_bytes)
        if kind == "report" and shutil.which("nsys") is None:
            raise RefusedError(
                415, "This is a report of Nsight Systems, and the server has no nsys to export it.",
                hint="Export it yourself: nsys export --type sqlite REPORT.nsys-rep",
            )  # fmt: skip
        run = StoredRun(id=new_id(), **asdict(wanted), size_bytes=incoming.size_bytes)
        try:
            self._folder.adopt(run.id, incoming.path)
            self._store.add(run)
        except (OSError, sqlite3.Error):
            self._folder.delete(run.id)
            raise
        return run

    def check(self, wanted: Wanted) -> None:
        """Refuse a baseline that isn't there."""
        if wanted.baseline is not None and self._store.get(wanted.baseline) is None:
            raise RefusedError(
                404, "There is no run with the id given as baseline.", hint="Leave it out, or upload it first."
            )

    def room(self) -> int:
        """Return how long an upload may get: what the folder and the disk have left for each that arrives."""
        free = self._folder.free_bytes() - self._limits.spare_bytes
        left = self._limits.disk_bytes - self._folder.stored_bytes()
        if free <= 0:
            raise disk_full()
        if left <= 0:
            raise self._no_room()
        return min(left, free) // max(len(self._arriving), 1)

    def _no_room(self) -> RefusedError:
        return RefusedError(
            507,
            f"The server has no room: it keeps at most {size(self._limits.disk_bytes)}.",
            hint="Delete old runs first.",
        )

    def _too_long(self) -> RefusedError:
        return RefusedError(
            413, f"The file is longer than the {size(self._limits.upload_bytes)} that the server takes.",
            hint="Capture a shorter window, or compress the file with zstd or xz.",
        )  # fmt: skip


def text(value: str | None, limit: int = LABEL_CHARACTERS) -> str | None:
    """Return what somebody typed as one printable line, or null if it is empty."""
    return printable(value.strip(), limit) or None if value else None


def file_name(value: str | None) -> str:
    """Return the last part of a file's name, to be shown and no more."""
    last = (value or "").replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return text(last, _NAME_CHARACTERS) or "trace"


def said(field: str, value: str | None) -> str | None:
    """Return what somebody typed into a field of a run: a note is longer than a label."""
    return text(value, NOTE_CHARACTERS if field == "note" else LABEL_CHARACTERS)
