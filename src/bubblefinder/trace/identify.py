"""Says in one line what a path is when it is not an Nsight Systems export."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import InputError, NotATraceError
from bubblefinder.trace.schema import STRING_IDS

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.trace.schema import Source

_EXPORT_HINT: Final = "export one with: nsys export --type sqlite REPORT.nsys-rep"
_REPORT_HINT: Final = "reports are for `bubblefinder report`, `diff`, `budget` and `history`; give the capture here"
_FOLDER_HINT: Final = "give the whole folder that nsys export wrote"
_MAGICS: Final = (
    (
        b"NVR\0",
        "an Nsight Compute report, which holds kernel metrics and no timeline",
        "record a timeline with Nsight Systems",
    ),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 export, which has no nulls and so can't tell absent from 0", _EXPORT_HINT),
    (b"PAR1", "one table of a Parquet export", _FOLDER_HINT),
    (b"ARROW1", "one table of an Arrow export", _FOLDER_HINT),
    (b"\xff\xff\xff\xff", "an Arrow stream", "give a folder written by: nsys export --type arrowdir REPORT.nsys-rep"),
    (b"PK\x03\x04", "a zip archive", "unpack it and give the export inside"),
    (b"\x28\xb5\x2f\xfd", "a damaged zstd file", "copy it again"),
)
_TEXTS: Final = (
    (rb'^\s*\{\s*"benign":|"schema"\s*:\s*"bubblefinder\.', "a report that bubblefinder wrote", _REPORT_HINT),
    (
        rb'"traceEvents"|"ph"\s*:\s*"',
        "a Chrome trace (PyTorch profiler or Perfetto)",
        "record with Nsight Systems; this format lacks what is needed",
    ),
    (rb'^\s*\{"(Type|type|data)"', "a JSON export of Nsight Systems", _EXPORT_HINT),
    (rb"^\s*[\[{]", "a JSON file", _EXPORT_HINT),
    (rb"(?i)^\s*<!doctype html", "a page, not a capture", _REPORT_HINT),
)
_LOOKALIKES: Final = (
    (r"StringTable", "an nvprof database", "record again with Nsight Systems; nvprof's format holds other things"),
    (r"rocpd_.*|KERN", "a ROCm profiler database", "captures of AMD GPUs are not supported"),
    (r"dlprof.*", "a DLProf database", "give the Nsight Systems export that DLProf read"),
    (r"CUPTI_ACTIVITY_KIND_.*", "an export that lost its StringIds table", "export the report again"),
)
_ALWAYS_WRITTEN: Final = {STRING_IDS, "ProcessStreams", "ANALYSIS_DETAILS"}


def foreign_file(path: Path, head: bytes) -> InputError | None:
    """Say what a file is that is no SQLite export, or None if that can't be told from its content.

    Args:
        path: the file.
        head: its first bytes.
    """
    if not head:
        return NotATraceError(f"{path.name} is empty", hint="the export failed or the copy was cut; export again")
    found = next(((what, hint) for magic, what, hint in _MAGICS if head.startswith(magic)), None)
    found = found or next(((what, hint) for pattern, what, hint in _TEXTS if re.search(pattern, head)), None)
    return NotATraceError(f"{path.name} is {found[0]}", hint=found[1]) if found else None


def check_tables(source: Source, name: str) -> None:
    """Look whether the tables are those of an Nsight Systems export.

    Raises:
        NotATraceError: they are another program's, or the export never got to its events.
    """
    tables = source.tables
    if STRING_IDS not in tables:
        raise _lookalike(source, name)
    if {table for table in tables if not table.startswith("sqlite_")} <= _ALWAYS_WRITTEN:
        raise NotATraceError(f"{name} is an export that failed: it has no events", hint="export the report again")


def _lookalike(source: Source, name: str) -> NotATraceError:
    """Say whose tables these are."""
    for sign, what, hint in _LOOKALIKES:
        if any(re.fullmatch(sign, table) for table in source.tables):
            return NotATraceError(f"{name} is {what}", hint=hint)
    kind = "SQLite file" if source.format == "sqlite" else "folder"
    return NotATraceError(f"{name} is a {kind} without the tables of an Nsight Systems export", hint=_EXPORT_HINT)
