"""What the server allows, and the refusal that says which limit was met."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Final

from bubblefinder.errors import InputError, UsageError

GIB = 1 << 30
MIB = 1 << 20
NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT}
"""What an OSError says of a disk that is full."""
LEAST_TOKEN = 16
"""Characters: what `openssl rand -hex 8` gives, too many to try at the pace that guesses are held to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on everything a client can make grow; bytes count as they arrive, whatever a header says.

    Attributes:
        upload_bytes: longest upload.
        unpacked_bytes: most bytes that a compressed file or an archive may unpack to.
        archive_files: most files in an archive.
        disk_bytes: most bytes that the data folder may hold.
        spare_bytes: what uploads and jobs leave free on the disk; a job that gets to a quarter of it is stopped.
        keep_s: age at which a run is deleted.
        waiting: most runs in the queue.
        jobs: runs worked on at once.
        job_bytes: memory of one job on the largest capture.
        job_s: time of one job on the largest capture.
        header_s: time to send a request's head.
        stall_s: longest silence inside an upload.
        form_s: time to send a body that is no upload.
        linger_s: time to go on taking in an upload that was refused, so that its sender can read why.
        slow_bytes_s: slowest average rate of an upload, once `stall_s` have passed.
        connections: open connections.
    """

    upload_bytes: int = 8 * GIB
    unpacked_bytes: int = 32 * GIB
    archive_files: int = 1_000
    disk_bytes: int = 100 * GIB
    spare_bytes: int = GIB // 4
    keep_s: float = 90 * 86_400
    waiting: int = 200
    jobs: int = 2
    job_bytes: int = 6 * GIB
    job_s: float = 1_800
    header_s: float = 10
    stall_s: float = 20
    form_s: float = 5
    linger_s: float = 60
    slow_bytes_s: int = 4_096
    connections: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What one job may use."""

    memory_bytes: int
    file_bytes: int
    seconds: float

    def fitted(self, size_bytes: int) -> Limit:
        """Return what a job on a capture of this size may use: a multiple of what the hungriest of its size need.

        A SQLite export of 51 MiB took 33 s and 340 MiB on two busy cores; one of 240 MiB of nothing but text 2.2 GiB.
        So a small capture made to hurt holds a slot for minutes, not for as long as the largest may take.
        """
        return Limit(
            memory_bytes=min(self.memory_bytes, 2 * GIB + 16 * size_bytes),
            file_bytes=self.file_bytes,
            seconds=min(self.seconds, 120 + 6 * size_bytes / MIB),
        )


class RefusedError(InputError):
    """A request that the server turns down, with its HTTP status."""

    def __init__(self, status: int, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


def checked_token(token: str | None) -> str | None:
    """Return a token that is fit to keep others out, or null where none is wanted.

    Raises:
        UsageError: it is empty, short, or can't be sent in a header as it is.
    """
    if token is None:
        return None
    if not token.strip():
        raise UsageError("the token is empty", hint="leave --token out, or make one: openssl rand -hex 16")
    if len(token) < LEAST_TOKEN:
        raise UsageError(
            f"the token has {len(token)} characters, and {LEAST_TOKEN} are the least", hint="openssl rand -hex 16"
        )
    if not (token.isascii() and token.isprintable() and token == token.strip()):
        raise UsageError("the token has characters that a header can't carry", hint="openssl rand -hex 16")
    return token


def disk_full() -> RefusedError:
    """Return the refusal of what the server's disk has no room for."""
    return RefusedError(507, "The server's disk is full.", hint="Delete runs that are no longer needed, or make room.")


def size(number: float) -> str:
    """Return a number of bytes in words: ``1.2 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":  # noqa: PLR2004 - bytes in a KiB
            break
        number /= 1024
    return f"{number:,.0f} bytes" if unit == "bytes" else f"{number:,.1f} {unit}"
