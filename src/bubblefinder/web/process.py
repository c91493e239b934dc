"""A worker process: started, listened to, and stopped when it passes a limit."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import sys
import time
from asyncio import subprocess
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.units import plural
from bubblefinder.web.limits import size
from bubblefinder.web.worker import STAGES, Limit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.web.limits import Limits

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


@dataclass(slots=True)
class Worker:
    """One job in a process of its own."""

    limits: Limits
    command: Sequence[str] = WORKER
    stage: str = ""
    _process: subprocess.Process | None = None
    _stopped: bool = False
    _failure: Outcome | None = None
    _said: dict[str, Any] = field(default_factory=dict)

    async def run(self, kind: str, job: Any) -> Outcome:  # noqa: ANN401 - Analysis or Comparison
        """Do a job and return how it ended; the process is gone by then."""
        try:
            process = self._process = await self._started()
        except OSError as error:
            return Outcome(error=f"The server can't start a job: {error.strerror}.", hint="Try again later.")
        watch = asyncio.create_task(self._watch(process))
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
            memory_bytes=self.limits.job_bytes,
            file_bytes=self.limits.unpacked_bytes,
            cpu_s=int(self.limits.job_s * 8) + 1,
        )

    async def _converse(self, process: subprocess.Process, order: dict[str, Any]) -> None:
        """Hand the job over and follow what is said, until stdout ends; stdin stays open meanwhile."""
        if process.stdin is None or process.stdout is None:
            return
        with suppress(ConnectionError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            await process.stdin.drain()
        with suppress(ValueError, TypeError):
            async for line in process.stdout:
                self._said = dict(json.loads(line))
                if self._said.get("stage") in STAGES:
                    self.stage = self._said["stage"]
            await process.wait()
        process.stdin.close()

    async def _watch(self, process: subprocess.Process) -> None:
        deadline = time.monotonic() + self.limits.job_s
        while True:
            await asyncio.sleep(_WATCH_S)
            if time.monotonic() > deadline:
                minutes = plural(max(round(self.limits.job_s / 60), 1), "minute")
                self._failure = Outcome(error=f"It took longer than {minutes}.", hint="Capture a shorter window.")
            elif _resident_bytes(process.pid) > self.limits.job_bytes:
                self._failure = self._too_much_memory()
            if self._failure:
                self.stop()
                return

    def _outcome(self, process: subprocess.Process) -> Outcome:
        if self._failure:
            return self._failure
        if "done" in self._said and process.returncode == 0:
            return Outcome(found=self._said["done"])
        if "error" in self._said:
            return Outcome(error=self._said["error"], hint=self._said.get("hint", ""))
        if "memory" in self._said:
            return self._too_much_memory()
        _log.warning("a job ended with exit code %s at the stage %s", process.returncode, self.stage)
        return self._broken_off(process.returncode)

    def _broken_off(self, code: int | None) -> Outcome:
        if code is None or code < 0:
            bound = size(self.limits.job_bytes)
            problem = f"the trace is damaged, or it needs more than the {bound} of memory that a job may use"
            hint = "Try the command line: bubblefinder analyze FILE"
        else:
            problem, hint = "an internal error", "BUBBLEFINDER_DEBUG=1 makes the server print it; please report it."
        where = f" at the stage “{self.stage}”" if self.stage else ""
        return Outcome(error=f"The job broke off{where}: {problem}.", hint=hint)

    def _too_much_memory(self) -> Outcome:
        return Outcome(
            error=f"It needs more than the {size(self.limits.job_bytes)} of memory that a job may use.",
            hint="Capture a shorter window, or start the server with a higher --memory.",
        )


def _resident_bytes(pid: int) -> int:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()
