"""Has a local Nsight Systems export a report that is not exported yet."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import InputError, NotATraceError
from bubblefinder.trace.quality import scrubbed

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXPORT: Final = ("nsys", "export", "--type", "sqlite", "--output")
_PATIENCE_S: Final = 3600


@contextmanager
def exported(report: Path) -> Iterator[Path]:
    """Give a SQLite export of a report, made in a temporary place; it is gone afterwards.

    Raises:
        InputError: Nsight Systems is not installed, or takes too long.
        NotATraceError: Nsight Systems can't export the report.
    """
    nsys = shutil.which("nsys")
    if nsys is None:
        raise InputError(
            f"{report.name} is a report that must be exported first, and Nsight Systems (nsys) is not installed here",
            hint=f"where it is installed, run: {shlex.join([*_EXPORT, f'{report.stem}.sqlite', report.name])}",
        )
    with tempfile.TemporaryDirectory(prefix="bubblefinder-") as place:
        database = Path(place) / f"{report.stem}.sqlite"
        command = [nsys, *_EXPORT[1:], str(database), str(report.resolve())]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise InputError(
                f"nsys export of {report.name} did not finish within an hour", hint="export it by hand"
            ) from error
        if done.returncode or not database.is_file():
            raise NotATraceError(
                f"nsys can't export {report.name}: {_reason(done)}",
                hint="a report needs an nsys at least as new as the one that made it",
            )
        yield database


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last thing that nsys said, on one line."""
    said = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
    errors = [line for line in said if "error" in line.lower() or "newer" in line.lower()]
    reasons = errors or said or [f"exit code {done.returncode}"]
    return scrubbed(reasons[-1])
