"""Programs that tests start: they end in time, with all that they started."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = False,
    seconds: float = 240,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and end whatever it leaves behind.

    What it prints goes to files: a pipe stays open, and its reader waits, for as long as any process that the command
    started and forgot, such as a daemon of nsys or a worker of dask.

    Raises:
        subprocess.TimeoutExpired: it took longer.
        subprocess.CalledProcessError: it failed, and `check` was asked for.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            process.wait(seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for file in (out, err):
            file.seek(0)
        done = subprocess.CompletedProcess(command, process.returncode, out.read(), err.read())
    if check:
        done.check_returncode()
    return done
