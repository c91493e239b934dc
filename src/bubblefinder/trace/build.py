"""Turns an opened export into a Trace: one frame a kind of event, every loss counted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.errors import CannotAnswerError
from bubblefinder.lookup import column_of, different
from bubblefinder.trace import frames, schema
from bubblefinder.trace.gpus import place
from bubblefinder.trace.info import read_info
from bubblefinder.trace.model import Trace
from bubblefinder.trace.notes import capture_notes
from bubblefinder.trace.part import read_part
from bubblefinder.trace.quality import Tally
from bubblefinder.trace.shapes import read_grids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bubblefinder.trace.schema import Source

_LONGEST_RANGE: Final = 1_024
"""Characters kept of an NVTX text. PyTorch's with shapes have some hundred; there can be as many texts as ranges."""

_LONGEST_LABEL: Final = 128
"""Characters kept of a thread's name; Linux allows 15."""


def build_trace(source: Source, name: str) -> Trace:
    """Read everything that is needed of an export.

    Args:
        source: the opened export.
        name: what to call the trace.

    Raises:
        CannotAnswerError: it holds GPU operations, none on a device that the capture knows.
        InputError: the file turns out to be damaged.
    """
    tally = Tally()
    operations = frames.read_operations(source, tally)
    calls = frames.read_calls(source, tally)
    operations = _placed(operations, source, calls, tally)  # no older frame may keep what is sorted next
    operations = frames.in_time_order(operations, within="gpu")
    ranges, domains = frames.read_nvtx(source, tally)
    overheads = frames.read_overheads(source, tally)
    os_calls = frames.read_os_calls(source, tally, calls)
    chains = frames.read_callchains(source, tally, calls)
    threads = source.read(schema.THREAD_NAMES).frame.drop_nulls(["thread", "name_id"])
    named = _distinct([operations["name"], calls["name"]])
    others = [
        ranges["text_id"], domains["text_id"], overheads["name_id"], os_calls["name_id"], chains["symbol_id"],
        threads["name_id"],
    ]  # fmt: skip
    strings = _looked_up(source, [pl.Series(named, dtype=pl.Int64), *others], tally)
    texts = pl.DataFrame(
        {"id": list(strings), "string": list(strings.values())}, schema={"id": pl.Int64, "string": pl.String}
    )
    diagnostics = source.read(schema.DIAGNOSTICS).frame
    processes = _distinct([column_of(frame, "process") for frame in (operations, calls, ranges)])
    gpus = _distinct([column_of(operations, "gpu")])
    part = read_part(source)
    info = read_info(source, name, diagnostics, (gpus, processes), part.origin_ns if part else _first(operations))
    trace = Trace(
        info=info,
        operations=operations,
        calls=calls,
        nvtx=_nvtx(ranges, domains, texts, tally),
        overheads=_with_text(overheads, "name_id", texts, "name").drop("name_id"),
        graph_nodes=frames.read_graph_nodes(source, tally),
        syncs=frames.read_syncs(source, tally),
        events=frames.read_events(source, tally),
        os_calls=_with_text(os_calls, "name_id", texts, "name").drop("name_id"),
        off_cpu=frames.read_off_cpu(source, tally, calls),
        frames=_with_text(chains, "symbol_id", texts, "symbol")[["callchain", "symbol", "depth"]],
        names={number: strings[number] for number in named if number in strings},
        thread_names=_thread_names(threads, strings),
        grids=read_grids(source, operations, strings),
        part=part,
    )
    return replace(trace, notes=(*tally.notes(), *capture_notes(source, trace, tally, diagnostics)))


def _placed(operations: pl.DataFrame, source: Source, calls: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Place the operations on their GPUs."""
    stored = operations.height
    operations = _with_process(operations, calls, tally)
    operations = place(operations, source, tally)
    if stored and operations.is_empty():
        raise CannotAnswerError(
            f"the {stored:,} GPU operations of this capture are on no device that it names",
            hint="export the report again with a current Nsight Systems; if that changes nothing, record again",
        )
    return operations


def _with_process(operations: pl.DataFrame, calls: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Give operations without a process the only one there is, or process 0 where there is no such one."""
    lacking = operations["process"].null_count()
    if not lacking:
        return operations
    tally.without_process = lacking
    known = _distinct([operations["process"], calls["process"]])
    return operations.with_columns(pl.col("process").fill_null(known[0] if len(known) == 1 else 0))


def _distinct(columns: Iterable[pl.Series]) -> list[int]:
    """Return the values that occur in any of the columns, in order."""
    return sorted({value for column in columns for value in different(column).to_list()})


def _first(operations: pl.DataFrame) -> int | None:
    """Return when the first operation starts."""
    first: int | None = operations["start_ns"].min()  # type: ignore[assignment]
    return first


def _with_text(frame: pl.DataFrame, number: str, texts: pl.DataFrame, name: str) -> pl.DataFrame:
    """Look up a column of string ids."""
    return frame.join(texts, left_on=number, right_on="id", how="left", maintain_order="left").rename({"string": name})


def _looked_up(source: Source, columns: Iterable[pl.Series], tally: Tally) -> dict[int, str]:
    """Return the texts of string ids; those too long to keep are cut, and counted as are those that are missing."""
    wanted = _distinct(columns)
    strings = source.strings(wanted)
    tally.not_text = strings.not_text
    tally.unnamed = len(wanted) - len(strings.texts) - strings.not_text
    tally.cut += sum(len(text) > schema.LONGEST_TEXT for text in strings.texts.values())
    return {number: text[: schema.LONGEST_TEXT] for number, text in strings.texts.items()}


def _nvtx(ranges: pl.DataFrame, domains: pl.DataFrame, texts: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Give NVTX ranges their text, registered or plain, and their domain's name, which each process has its own of."""
    keys = ["process", "domain_id"]
    named = _with_text(domains, "text_id", texts, "string").select(*keys, domain=pl.coalesce("text", "string"))
    named = named.unique(keys, keep="last", maintain_order=True)
    full = _with_text(ranges, "text_id", texts, "string").join(named, on=keys, how="left", maintain_order="left")
    text = pl.coalesce("text", "string", pl.lit("")).alias("text")
    kept = full.select("row", "start_ns", "end_ns", "process", "thread", "domain", text)
    tally.cut += int((kept["text"].str.len_chars() > _LONGEST_RANGE).sum())
    return kept.with_columns(pl.col("text").str.slice(0, _LONGEST_RANGE), pl.col("domain").str.slice(0, _LONGEST_RANGE))


def _thread_names(threads: pl.DataFrame, texts: Mapping[int, str]) -> dict[int, str]:
    """Return each thread's last name; a thread may have been named several times."""
    return {
        thread: texts[number][:_LONGEST_LABEL]
        for thread, number in threads[["thread", "name_id"]].iter_rows()
        if number in texts
    }
