"""Which physical GPU an operation ran on."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.lookup import numbered, where
from bubblefinder.trace import schema
from bubblefinder.trace.model import pid_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.intervals import Ints
    from bubblefinder.trace.quality import Tally
    from bubblefinder.trace.schema import Source

_NO_DEVICE: Final = 0x7FFF_FFFF
_SLICE: Final = "MIG-"
_NAMED_SLICE: Final = r"\bMIG\b"
_PLACE: Final = ["process", "context", "device"]
_PLACED: Final = {"device": pl.Int32, "gpu": pl.Int32}


def place(operations: pl.DataFrame, source: Source, tally: Tally) -> pl.DataFrame:
    """Give every operation the physical GPU it ran on, and leave out those that have none.

    A device number counts from 0 inside its process; TARGET_INFO_CUDA_DEVICE says which GPU that
    is. Without an entry the number is taken for the GPU's own. An operation may lack a usable
    device (a graph whose first node runs on the host): then its context says it, or the process
    has only one.

    Args:
        operations: with `process`, `context` and `device` as stored.
        source: the export.
        tally: counts what was left out and what was assumed.

    Returns:
        The operations with `device` and `gpu` (both Int32), in the same order.
    """
    places, number = _places(operations)
    by_context = _devices_of_contexts(source)
    seen = [(process, device) for process, _, device, _ in places]
    by_process = _only_devices([*seen, *((process, device) for (process, _), device in by_context.items())])
    gpus = _gpus_of_devices(source, sorted({process for process, *_ in places}), tally)
    placed: list[tuple[int | None, int | None]] = []
    for process, context, stored, count in places:
        device = stored if _usable(stored) else by_context.get((process, context), by_process.get(process))
        if device is None or not _usable(device):
            tally.without_device += count
            placed.append((None, None))
            continue
        gpu = gpus.get((process, device))
        tally.assumed_gpu += count if gpu is None else 0
        placed.append((device, device if gpu is None else gpu))
    if len(placed) == 1:
        used = _with_gpu(operations, *(pl.lit(one, pl.Int32) for one in placed[0]))
    else:
        used = _with_gpu(operations, *pl.DataFrame(placed, schema=_PLACED, orient="row")[number])
    return used.filter(pl.col("gpu").is_not_null()) if used["gpu"].null_count() else used


def _with_gpu(operations: pl.DataFrame, device: pl.Expr | pl.Series, gpu: pl.Expr | pl.Series) -> pl.DataFrame:
    """Put the device in its column and the GPU beside it."""
    names = list(operations.columns)
    names.insert(names.index("device") + 1, "gpu")
    return operations.with_columns(device.alias("device"), gpu.alias("gpu")).select(names)


def _places(operations: pl.DataFrame) -> tuple[list[tuple[int, int | None, int | None, int]], Ints]:
    """Return each process, context and device with its number of operations, and which of them each operation has."""
    rows, number = numbered(operations.select(_PLACE))
    return [(*row, int(count)) for row, count in zip(rows, np.bincount(number), strict=True)], number


def _usable(device: int | None) -> bool:
    """Say whether a stored device number names a device."""
    return device is not None and 0 <= device < _NO_DEVICE


def _only_devices(used: list[tuple[int, int | None]]) -> dict[int, int]:
    """Return the device of each process that uses exactly one."""
    devices = defaultdict(set)
    for process, device in used:
        if device is not None and _usable(device):
            devices[process].add(device)
    return {process: next(iter(numbers)) for process, numbers in devices.items() if len(numbers) == 1}


def _devices_of_contexts(source: Source) -> dict[tuple[int, int | None], int]:
    """Return the device of each context that the capture describes, by process key and context."""
    rows = source.read(schema.CONTEXTS).frame.drop_nulls(["hw", "vm", "pid", "device", "context"])
    return {
        ((hw << 32) | (vm << 24) | pid, context): device
        for hw, vm, pid, device, context in rows[["hw", "vm", "pid", "device", "context"]].iter_rows()
        if _usable(device)
    }


def _gpus_of_devices(source: Source, processes: list[int], tally: Tally) -> dict[tuple[int, int], int]:
    """Return Nsight Systems' GPU index of each device, by process key and device number.

    An entry without an index is matched by the GPU's unique id. The table knows processes by their id alone, which two
    containers may share: then each of them gets one of the entries, in order, and that is a guess.
    """
    listed = source.read(schema.GPUS).frame.drop_nulls("gpu")
    by_uuid = dict(listed.drop_nulls("uuid")[["uuid", "gpu"]].iter_rows())
    cut = set(listed.pipe(where, pl.col("name").str.contains(_NAMED_SLICE))["gpu"])
    rows = source.read(schema.CUDA_DEVICES).frame.drop_nulls(["pid", "device"])
    entries = defaultdict[tuple[int, int], list[int]](list)
    slices = defaultdict[int, set[str]](set)
    for pid, device, gpu, uuid in rows[["pid", "device", "gpu", "uuid"]].iter_rows():
        found = by_uuid.get(uuid, -1) if gpu is None else gpu
        if _usable(found):
            entries[pid, device].append(found)
        if found in cut or (uuid and uuid.startswith(_SLICE)):
            slices[found].add(uuid or f"{pid}, {device}")
    tally.sliced_gpus += sum(len(uuids) > 1 for uuids in slices.values())
    return dict(_shared_out(entries, listed["gpu"].n_unique(), processes, tally))


def _shared_out(
    entries: dict[tuple[int, int], list[int]], listed: int, processes: list[int], tally: Tally
) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield the GPU of each process and device; processes of one id share out the entries in order.

    One entry for several processes may be one's own alone, unless the capture lists a single GPU.
    """
    by_pid = defaultdict[int, list[int]](list)
    for process in processes:
        by_pid[pid_of(process)].append(process)
    for (pid, device), told in entries.items():
        alike, gpus = by_pid.get(pid, []), list(dict.fromkeys(told))
        unsure = len(gpus) > 1 or (len(told) < len(alike) and listed != 1)
        tally.ambiguous_gpu += len(alike) if unsure and len(alike) > 1 else 0
        for number, process in enumerate(alike):
            yield (process, device), gpus[min(number, len(gpus) - 1)] if len(alike) > 1 else gpus[-1]
