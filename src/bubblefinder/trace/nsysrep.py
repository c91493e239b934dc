"""Has a local Nsight Systems export a report, or a raw recording, that is not exported yet."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from bubblefinder.ending import temporary_folder
from bubblefinder.errors import InputError, NotATraceError
from bubblefinder.trace.nsys import Nsys, export_report, import_recording, installed_nsys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

REPORTS: Final = (".nsys-rep", ".qdrep")
RECORDING: Final = ".qdstrm"
_EXPORT: Final = ("nsys", "export", "--type", "sqlite", "--output")
_IMPORT: Final = ("QdstrmImporter", "-i")


@contextmanager
def exported(path: Path, progress: Callable[[str], None]) -> Iterator[Path]:
    """Give a SQLite export of a report or a raw recording, made in a temporary place; it is gone afterwards.

    Args:
        path: the report or recording.
        progress: called with what is done and how far it is.

    Raises:
        InputError: Nsight Systems, or what it needs, is not installed, or takes too long.
        NotATraceError: Nsight Systems can't read the file.
    """
    nsys = _installed(path)
    with temporary_folder() as place:
        report = path.resolve()
        if path.suffix == RECORDING:
            report = _imported(nsys, path, place / f"{path.stem}.nsys-rep", progress)
        database = place / f"{path.stem}.sqlite"
        done = export_report(nsys, report, database, progress)
        if done.code or not database.is_file():
            raise NotATraceError(
                f"nsys can't export {path.name}: {done.reason}",
                hint="a report needs an nsys at least as new as the one that made it",
            )
        yield database


def _imported(nsys: Nsys, recording: Path, report: Path, progress: Callable[[str], None]) -> Path:
    """Return the report that the importer made of a recording.

    Raises:
        InputError: there is no importer.
        NotATraceError: it can't read the recording.
    """
    if nsys.importer is None:
        raise InputError(
            f"{recording.name} is a raw recording, and no QdstrmImporter lies beside {nsys.command}",
            hint=f"where Nsight Systems is installed whole, run: {_by_hand(recording)}",
        )
    done = import_recording(nsys.importer, recording.resolve(), report, progress)
    if not report.is_file():
        raise NotATraceError(
            f"QdstrmImporter can't read {recording.name}: {done.reason}",
            hint="a recording needs the importer of the Nsight Systems that made it",
        )
    return report


def _installed(path: Path) -> Nsys:
    nsys = installed_nsys()
    if nsys is None:
        kind = "a raw recording that must be imported and" if path.suffix == RECORDING else "a report that must be"
        raise InputError(
            f"{path.name} is {kind} exported first, and Nsight Systems (nsys) is not installed here",
            hint=f"where it is installed, run: {_by_hand(path)}",
        )
    return nsys


def _by_hand(path: Path) -> str:
    """Return the commands that do by hand what is done here."""
    report = f"{path.stem}.nsys-rep" if path.suffix == RECORDING else path.name
    export = shlex.join([*_EXPORT, f"{path.stem}.sqlite", report])
    return f"{shlex.join([*_IMPORT, path.name, '-o', report])} && {export}" if path.suffix == RECORDING else export
