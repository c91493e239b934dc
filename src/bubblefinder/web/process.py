"""A worker process: started, listened to, and stopped when it passes a limit."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import shutil
import signal
import sys
import time
from asyncio import subprocess
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.units import plural
from bubblefinder.web.limits import Limit, Limits, size
from bubblefinder.web.worker import STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


WORKER: Final = (sys.executable, "-m", "bubblefinder.web.worker")
_LINE_BYTES: Final = 1 << 20
_WATCH_S: Final = 0.2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: with what it found, or with an error and a hint."""

    found: Mapping[str, Any] | None = None
    error: str = ""
    hint: str = ""
    disk_full: bool = False


@dataclass(slots=True)
class Worker:
    """One job in a process of its own; `stage_begun_s` is of the monotonic clock."""

    limits: Limits
    command: Sequence[str] = WORKER
    stage: str = ""
    stage_begun_s: float = field(default_factory=time.monotonic)
    _begun_s: float = field(default_factory=time.monotonic)
    _allowed: Limit = field(init=False)
    _process: subprocess.Process | None = None
    _stopped: bool = False
    _failure: Outcome | None = None
    _said: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Allow what the largest capture may use, until it is known how large this one is."""
        self._allowed = self._limit()

    @property
    def stage_s(self) -> float:
        """For how long it has been at its stage."""
        return time.monotonic() - self.stage_begun_s

    async def run(self, kind: str, job: Any, disk: Path, size_bytes: int | None = None) -> Outcome:  # noqa: ANN401
        """Do a job and return how it ended; the process is gone by then.

        Args:
            kind: "analysis" or "comparison".
            job: the Upload or Comparison.
            disk: a place on the disk that the job writes to, which must not get full.
            size_bytes: the length of the upload, if there is one.
        """
        self._begun_s = self.stage_begun_s = time.monotonic()
        if size_bytes is not None:
            self._allowed = self._limit().fitted(size_bytes)
        try:
            process = self._process = await self._started()
        except OSError as error:
            return Outcome(error=f"The server can't start a job: {error.strerror}.", hint="Try again later.")
        watch = asyncio.create_task(self._watch(process, disk))
        try:
            if self._stopped:
                self.stop()
            await self._converse(process, {"limit": asdict(self._limit()), kind: asdict(job)})
        finally:
            watch.cancel()
            self.stop()
            await asyncio.shield(process.wait())
        return self._outcome(process)

    def stop(self) -> None:
        """Kill the process; it holds nothing that a restart needs."""
        self._stopped = True
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _started(self) -> subprocess.Process:
        return await subprocess.create_subprocess_exec(
            *self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("BUBBLEFINDER_DEBUG") else subprocess.DEVNULL,
            limit=_LINE_BYTES,
            start_new_session=True,
        )

    def _limit(self) -> Limit:
        return Limit(
            memory_bytes=self.limits.job_bytes, file_bytes=self.limits.unpacked_bytes, seconds=self.limits.job_s
        )

    async def _converse(self, process: subprocess.Process, order: dict[str, Any]) -> None:
        """Hand the job over and follow what is said, until stdout ends; stdin stays open meanwhile."""
        if process.stdin is None or process.stdout is None:
            return
        with suppress(ConnectionError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            await process.stdin.drain()
        try:
            async for line in process.stdout:
                self._hear(dict(json.loads(line)))
            await process.wait()
        except (ValueError, TypeError):
            self._failure = self._failure or self._broken_off("it said what the server doesn't understand")
        process.stdin.close()

    def _hear(self, said: dict[str, Any]) -> None:
        self._said = said
        if said.get("stage") in STAGES and said["stage"] != self.stage:
            self.stage, self.stage_begun_s = said["stage"], time.monotonic()
        if "bytes" in said:
            self._allowed = self._limit().fitted(int(said["bytes"]))

    async def _watch(self, process: subprocess.Process, disk: Path) -> None:
        while not self._failure:
            await asyncio.sleep(_WATCH_S)
            if time.monotonic() > self._begun_s + self._allowed.seconds:
                self._failure = self._too_long()
            elif _resident_bytes(process.pid) > self._allowed.memory_bytes:
                self._failure = self._too_much_memory()
            elif shutil.disk_usage(disk).free < self.limits.spare_bytes // 4:
                self._failure = Outcome(disk_full=True)
        self.stop()

    def _outcome(self, process: subprocess.Process) -> Outcome:
        if self._failure:
            return self._failure
        if "done" in self._said and process.returncode == 0:
            return Outcome(found=self._said["done"])
        if "error" in self._said:
            return Outcome(error=self._said["error"], hint=self._said.get("hint", ""))
        if "memory" in self._said:
            return self._too_much_memory()
        if "disk" in self._said:
            return Outcome(disk_full=True)
        _log.warning("a job ended with exit code %s at the stage %s", process.returncode, self.stage)
        return self._ended_by(process.returncode)

    def _ended_by(self, code: int | None) -> Outcome:
        if code == -signal.SIGXCPU:
            return self._too_long()
        if code == -signal.SIGKILL:
            return self._broken_off(
                "something killed it, most likely the system for want of memory",
                "Upload it again, or try the command line: bubblefinder analyze FILE",
            )
        if code is None or code < 0:
            bound = size(self._allowed.memory_bytes)
            return self._broken_off(
                f"the trace is damaged, or it needs more than the {bound} of memory that a job on it may use",
                "Try the command line: bubblefinder analyze FILE",
            )
        return self._broken_off("an internal error")

    def _broken_off(
        self, problem: str, hint: str = "BUBBLEFINDER_DEBUG=1 makes the server print it; please report it."
    ) -> Outcome:
        where = f" at the stage “{self.stage}”" if self.stage else ""
        return Outcome(error=f"The job broke off{where}: {problem}.", hint=hint)

    def _too_long(self) -> Outcome:
        minutes = plural(max(round(self._allowed.seconds / 60), 1), "minute")
        return Outcome(
            error=f"It took longer than {minutes}, the most that a capture of its size may take.",
            hint="Capture a shorter window, or try the command line: bubblefinder analyze FILE",
        )

    def _too_much_memory(self) -> Outcome:
        return Outcome(
            error=f"It needs more than the {size(self._allowed.memory_bytes)} of memory that a job on it may use.",
            hint="Capture a shorter window, or try the command line: bubblefinder analyze FILE",
        )


def _resident_bytes(pid: int) -> int:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()
