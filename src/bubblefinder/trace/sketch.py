"""A capture written event by event, for drawings and tests: what Nsight Systems would have recorded of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.trace import model
from bubblefinder.trace.columns import FRAMES
from bubblefinder.trace.request_kernels import request_kernels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

_VIRTUAL_MACHINE: Final = 1 << 24
_STREAM: Final = 7
_WAITS: Final = re.compile(r"(?:cuda|cu)(?:(Stream|Event|Device|Ctx)Synchronize|Stream(Wait)Event)")
_SYNC_TYPES: Final = {"Event": 1, "Wait": 2, "Stream": 3, "Device": 4, "Ctx": 4}
_RECORDS: Final = re.compile(r"(?:cuda|cu)EventRecord")

Row = dict[str, object]


def process_key(pid: int) -> int:
    """Return the process key of a process id on the capture's own machine."""
    return _VIRTUAL_MACHINE | pid


def thread_key(process: int, number: int) -> int:
    """Return the thread key of a process's thread."""
    return process << 24 | number


@dataclass(slots=True)
class Sketch:
    """Events by frame; `trace` sorts them and numbers their rows.

    Correlation ids count from 1 in every process, so those of two processes collide, as they do in
    real captures.
    """

    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in FRAMES})
    names: dict[str, int] = field(default_factory=dict)
    _correlations: dict[int, int] = field(default_factory=dict)
    _records: dict[tuple[int, int | None], int] = field(default_factory=dict)

    def add(self, frame: str, start_ns: int, end_ns: int, **values: object) -> None:
        """Add a row to a frame."""
        self.rows[frame].append({"start_ns": start_ns, "end_ns": end_ns, **values})

    def name(self, text: str) -> int:
        """Return the string id of a text."""
        return self.names.setdefault(text, len(self.names) + 1)

    def correlate(self, process: int) -> int:
        """Return a correlation id new to the process."""
        self._correlations[process] = self._correlations.get(process, 0) + 1
        return self._correlations[process]

    def operation(self, kind: int, start_ns: int, end_ns: int, **values: object) -> None:
        """Add an operation, on GPU 0 and stream 7 unless `values` say otherwise; `name` is text.

        `grid`, the blocks of a kernel along x and y, is kept of those that count requests.
        """
        text, node = values.pop("name", None), values.get("graph_node")
        gpu = values.setdefault("gpu", 0)
        row: Row = {
            "start_ns": start_ns,
            "end_ns": end_ns,
            "device": gpu,
            "context": 1,
            "stream": _STREAM,
            "kind": kind,
        }
        if isinstance(node, int):
            row["graph"] = node >> 32
        if isinstance(text, str):
            row["name"] = self.name(text)
        row.update(values)
        self.rows["operations"].append(row)

    def call(self, api: str, start_ns: int, end_ns: int, thread: int, frames: Sequence[str] = (), **values: int) -> int:
        """Add an API call, with what is recorded beside a wait or an event, and return its correlation id.

        `values` may hold its return_value, and the stream and the event that it concerns.
        """
        process = thread >> 24
        correlation = self.correlate(process)
        chain = len(self.rows["frames"]) + 1 if frames else None
        self.rows["frames"] += [{"callchain": chain, "symbol": s, "depth": d} for d, s in enumerate(frames)]
        row: Row = {"process": process, "correlation": correlation}
        said: Row = {"name": self.name(api), "return_value": values.get("return_value", 0)}
        self.add("calls", start_ns, end_ns, **row, **said, thread=thread, callchain=chain)
        row |= {"stream": values.get("stream", _STREAM), "event": values.get("event")}
        if wait := _WAITS.match(api):
            link = self._records.get((process, values.get("event")))
            self.add("syncs", start_ns, end_ns, **row, event_sync=link, sync_type=_SYNC_TYPES[wait[1] or wait[2]])
        elif _RECORDS.match(api):
            self._records[process, values.get("event")] = correlation
            self.rows["events"].append({**row, "context": 1, "event_sync": correlation})
        return correlation

    def trace(self, name: str = "sketch", duration_ns: int | None = None) -> model.Trace:
        """Return the capture."""
        processes = sorted(
            {p for rows in self.rows.values() for row in rows if isinstance(p := row.get("process"), int)}
        )
        gpus = sorted({g for row in self.rows["operations"] if isinstance(g := row["gpu"], int)})
        info = model.TraceInfo(
            name=name,
            format="sketch",
            duration_ns=duration_ns,
            gpus=tuple(model.Gpu(gpu, None) for gpu in gpus),
            processes=tuple(model.Process(p, model.pid_of(p), None) for p in processes),
        )
        frames: dict[str, Any] = {name: self._frame(name) for name in FRAMES}
        drawn = frames.pop("operations")
        names = {i: text for text, i in self.names.items()}
        operations = drawn.drop("grid")
        return model.Trace(info=info, names=names, operations=operations, **frames, grids=_grids(drawn, names))

    def _frame(self, name: str) -> pl.DataFrame:
        """Return the rows of a frame in the order of a capture; operations have their `grid` beside what it lists."""
        import polars as pl

        schema = {column: getattr(pl, field.dtype) for column, field in FRAMES[name].items()}
        schema |= {"grid": pl.Array(pl.Int64, 2)} if name == "operations" else {}
        frame = pl.DataFrame(self.rows[name], schema=schema, orient="row")
        if frame.is_empty():
            return frame
        if order := [column for column in ("start_ns", "end_ns", "kind") if column in schema]:
            frame = frame.sort(order, maintain_order=True, nulls_last=True)
        if "row" in schema:
            frame.replace_column(frame.columns.index("row"), _numbered(frame))
        several = "gpu" in schema and frame["gpu"].min() != frame["gpu"].max()
        return frame.sort("gpu", maintain_order=True) if several else frame


def _numbered(frame: pl.DataFrame) -> pl.Series:
    """Return the position of each row in its table; each kind of operations has one."""
    import numpy as np
    import polars as pl

    number = np.arange(len(frame), dtype=np.uint32)
    for kind in set(frame["kind"]) if "kind" in frame.columns else ():
        mine = frame["kind"].to_numpy() == kind
        number[mine] = np.arange(mine.sum())
    return pl.Series("row", number)


def _grids(drawn: pl.DataFrame, names: Mapping[int, str]) -> pl.DataFrame:
    """Return what `trace.shapes.read_grids` would read of an export of these operations."""
    import polars as pl

    if drawn["grid"].null_count() == len(drawn):
        return pl.DataFrame(schema={"row": pl.UInt32, "x": pl.Int64, "y": pl.Int64})
    counting = pl.col("name").is_in(list(request_kernels(names))) & pl.col("graph_node").is_null()
    counted = drawn.filter(counting).drop_nulls("grid")
    return counted.select("row", x=pl.col("grid").arr.get(0), y=pl.col("grid").arr.get(1))
