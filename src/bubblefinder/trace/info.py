"""What the capture says of itself: versions, GPUs, processes, time base."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from bubblefinder.trace import schema
from bubblefinder.trace.model import Gpu, Process, TraceInfo, pid_of, process_of
from bubblefinder.trace.quality import cupti_version

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from bubblefinder.trace.schema import Source

_NORMALISED_NS: Final = 10**17
_LONGEST_VERSION: Final = 64
"""Characters kept of a version; "2025.3.1.90-253135822126v0" has 26."""
_LONGEST_NAME: Final = 128
"""Characters kept of the name of a GPU or a program; files have up to 255, of which nobody reads the second half."""


def read_info(
    source: Source,
    name: str,
    diagnostics: pl.DataFrame,
    used: tuple[Iterable[int], Iterable[int]],
    first_ns: int | None,
) -> TraceInfo:
    """Collect what the capture says of itself.

    Args:
        source: the export.
        name: what to call the trace.
        diagnostics: rows of DIAGNOSTIC_EVENT.
        used: the physical GPUs with operations, and the processes with events.
        first_ns: start of the first operation, if there is one.
    """
    export = _pairs(source, schema.EXPORT)
    system = _pairs(source, schema.SYSTEM)
    gpus, processes = used
    return TraceInfo(
        name=name,
        format=source.format,
        nsys_version=_known(export.get("EXPORT_PRODUCT_VERSION")),
        schema_version=_known(export.get("EXPORT_SCHEMA_VERSION")),
        cupti_version=_short(cupti_version(diagnostics), _LONGEST_VERSION),
        driver_version=_known(system.get("NvDriverVersion")),
        cuda_version=_dotted(system.get("CudaDriverVersion")),
        duration_ns=max(source.read(schema.ANALYSIS).frame["duration_ns"].drop_nulls(), default=None),
        start_ns=_origin(source, export.get("EXPORT_CONFIG_TIME_SHIFT"), first_ns),
        gpus=_gpus(source, gpus),
        processes=_processes(source, processes),
        utc_ns=min(source.read(schema.SESSIONS).frame["utc_ns"].drop_nulls(), default=None),
    )


def gpu_names(source: Source) -> dict[int, str | None]:
    """Return the name of every GPU that the capture lists, by Nsight Systems' index."""
    rows = source.read(schema.GPUS).frame.drop_nulls("gpu")
    return {gpu: _short(name, _LONGEST_NAME) for gpu, name in rows[["gpu", "name"]].iter_rows()}


def _pairs(source: Source, table: schema.Table) -> dict[str, str]:
    """Return a name/value table; of a name that repeats, the first value."""
    rows = source.read(table).frame.drop_nulls(["name", "value"]).unique("name", keep="first", maintain_order=True)
    return dict(rows[["name", "value"]].iter_rows())


def _known(version: str | None) -> str | None:
    """Return a version that looks like one."""
    looks = version and re.fullmatch(r"[1-9][\d.]*(?:-\w{1,20})?", version)
    return _short(version, _LONGEST_VERSION) if looks else None


def _dotted(cuda: str | None) -> str | None:
    """Turn CUDA's number for a version, 13000 or 12040, into 13.0 or 12.4."""
    if not cuda or not re.fullmatch(r"[1-9]\d{3,5}", cuda):
        return None
    return f"{int(cuda) // 1000}.{int(cuda) % 1000 // 10}"


def _origin(source: Source, shift: str | None, first_ns: int | None) -> int:
    """Return the time of the capture's start on its own clock.

    An export may be shifted or counted from 1970; the former is written down, the latter shows in
    the times where the note is missing.
    """
    if shift and re.fullmatch(r"-?\d{1,19}", shift) and int(shift):
        return int(shift)
    if first_ns is None or first_ns < _NORMALISED_NS:
        return 0
    began = min(source.read(schema.SESSIONS).frame["utc_ns"].drop_nulls(), default=first_ns)
    return min(began, first_ns)


def _gpus(source: Source, used: Iterable[int]) -> tuple[Gpu, ...]:
    """Return the GPUs that worked, with the names and the bandwidths the capture has for them."""
    rows = source.read(schema.GPUS).frame.drop_nulls("gpu")
    known = {
        gpu: (_short(name, _LONGEST_NAME), bandwidth or None)
        for gpu, name, bandwidth in rows[["gpu", "name", "bandwidth"]].rows()
    }
    return tuple(Gpu(gpu, *known.get(gpu, (None, None))) for gpu in sorted(used))


def _processes(source: Source, used: Iterable[int]) -> tuple[Process, ...]:
    """Return the processes with events, named by their program without its folder."""
    rows = source.read(schema.PROCESSES).frame.drop_nulls("global_id")
    names = {process_of(number): name for number, name in rows[["global_id", "name"]].iter_rows()}
    return tuple(Process(key, pid_of(key), _program(names.get(key))) for key in sorted(used))


def _program(name: str | None) -> str | None:
    """Return a program's own name from its path; arguments are never kept."""
    if not name:
        return None
    path = name.split(" -", 1)[0]
    return _short(re.split(r"[\\/]", path)[-1].split(" ", 1)[0] or None, _LONGEST_NAME)


def _short(text: str | None, limit: int) -> str | None:
    """Return no more of a text than has a meaning."""
    return text[:limit] if text is not None else None
