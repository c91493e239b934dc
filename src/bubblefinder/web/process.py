"""Worker processes: started, listened to, stopped when a job passes a limit, and kept for the next."""

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
from bubblefinder.web.orders import STAGES

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
class Processes:
    """Processes that do jobs, one at a time each; some that are at none are kept, for they begin the next at once."""

    command: Sequence[str] = WORKER
    kept: int = 1
    _idle: list[subprocess.Process] = field(default_factory=list)

    async def take(self) -> subprocess.Process:
        """Return a process that takes a job.

        Raises:
            OSError: there is none, and none can be started.
        """
        while self._idle:
            process = self._idle.pop()
            if process.returncode is None:
                return process
            await ended(process)
        return await subprocess.create_subprocess_exec(
            *self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("BUBBLEFINDER_DEBUG") else subprocess.DEVNULL,
            limit=_LINE_BYTES,
            start_new_session=True,
        )

    async def give_back(self, process: subprocess.Process) -> None:
        """Keep a process whose job has ended, or have it end."""
        if len(self._idle) < self.kept:
            self._idle.append(process)
        else:
            await ended(process)

    async def let_go(self) -> None:
        """End the processes that are kept, and with them the memory that they hold."""
        idle, self._idle = self._idle, []
        for process in idle:
            await ended(process)


async def ended(process: subprocess.Process) -> None:
    """End a process that is at no job, and wait until all that it started is gone: they hear the end of stdin."""
    if process.stdin is not None and process.stdout is not None:
        process.stdin.close()
        await process.stdout.read()
    await process.wait()


@dataclass(slots=True)
class Worker:
    """One job in a process of its own; `stage_begun_s` is of the monotonic clock."""

    limits: Limits
    processes: Processes = field(default_factory=Processes)
    stage: str = ""
    stage_begun_s: float = field(default_factory=time.monotonic)
    _begun_s: float = field(default_factory=time.monotonic)
    _allowed: Limit = field(init=False)
    _process: subprocess.Process | None = None
    _pid: int | None = None
    _code: int | None = None
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
            process = self._process = await self.processes.take()
        except OSError as error:
            return Outcome(error=f"The server can't start a job: {error.strerror}.", hint="Try again later.")
        watch = asyncio.create_task(self._watch(process, disk))
        try:
            if self._stopped:
                self.stop()
            await self._converse(process, {"limit": asdict(self._limit()), kind: asdict(job)})
        finally:
            watch.cancel()
            await asyncio.shield(self._leave(process))
        return self._outcome()

    def stop(self) -> None:
        """Kill the job; it holds nothing that a restart needs."""
        self._stopped = True
        if self._process is None or self._code is not None:
            return
        with suppress(ProcessLookupError):
            if self._pid is None:
                self._process.kill()
            else:
                os.kill(self._pid, signal.SIGKILL)

    async def _leave(self, process: subprocess.Process) -> None:
        """Return once the job is gone; its process is kept if the job ended by itself."""
        if self._code is not None and self._code >= 0 and process.returncode is None:
            await self.processes.give_back(process)
        else:
            self.stop()
            await ended(process)

    def _limit(self) -> Limit:
        return Limit(
            memory_bytes=self.limits.job_bytes, file_bytes=self.limits.unpacked_bytes, seconds=self.limits.job_s
        )

    async def _converse(self, process: subprocess.Process, order: dict[str, Any]) -> None:
        """Hand the job over and follow what is said until it has ended; stdin stays open meanwhile."""
        if process.stdin is None or process.stdout is None:
            return
        with suppress(ConnectionError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            await process.stdin.drain()
        try:
            while self._code is None and (line := await process.stdout.readline()):
                self._hear(dict(json.loads(line)))
            if self._code is None:
                self._code = await process.wait()
        except (ValueError, TypeError):
            self._failure = self._failure or self._broken_off("it said what the server doesn't understand")

    def _hear(self, said: dict[str, Any]) -> None:
        if "pid" in said and self._pid is None:
            self._pid = int(said["pid"])
            if self._stopped:
                self.stop()
        elif "ended" in said:
            self._code = int(said["ended"])
        else:
            self._follow(said)

    def _follow(self, said: dict[str, Any]) -> None:
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
            elif _resident_bytes(self._pid or process.pid) > self._allowed.memory_bytes:
                self._failure = self._too_much_memory()
            elif shutil.disk_usage(disk).free < self.limits.spare_bytes // 4:
                self._failure = Outcome(disk_full=True)
        self.stop()

    def _outcome(self) -> Outcome:
        if self._failure:
            return self._failure
        if "done" in self._said and self._code == 0:
            return Outcome(found=self._said["done"])
        if "error" in self._said:
            return Outcome(error=self._said["error"], hint=self._said.get("hint", ""))
        if "memory" in self._said:
            return self._too_much_memory()
        if "disk" in self._said:
            return Outcome(disk_full=True)
        _log.warning("a job ended with exit code %s at the stage %s", self._code, self.stage)
        return self._ended_by(self._code)

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
