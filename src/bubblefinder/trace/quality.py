"""What a capture can and can't tell: notes with stable codes, and the counts behind them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bubblefinder.trace import schema
from bubblefinder.trace.model import EVENTS_UNREAD, QualityNote

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.trace.model import Level
    from bubblefinder.trace.schema import Source

_LOST: Final = re.compile(
    r"dropp|incomplete|could ?n[o']t (?:allocate|parse)|size limit|buffers: (\d+) of (?!\1\b)|events? might be missing",
    re.IGNORECASE,
)
_UNREAD: Final = re.compile(r"error when processing events", re.IGNORECASE)
_INCOMPLETE: Final = re.compile(r"not all .*(CUDA|NVTX|OS runtime).* events", re.IGNORECASE)
_INCOMPLETE_NVTX: Final = re.compile(r"not all NVTX events", re.IGNORECASE)
_NVTX_COLLECTED: Final = re.compile(r"Number of NVTX events collected:\s*(\d+)")
_RELEVANT: Final = re.compile(r"CUDA|CUPTI|NVTX", re.IGNORECASE)
_ABSENT: Final = re.compile(r"^No \S.* events collected", re.IGNORECASE)
_NONE_LOST: Final = re.compile(r":\s*0\.?\s*$")
PATH: Final = re.compile(r"(?<![\w/])(?:[A-Za-z]:\\[^,;'\"]*|~?(?:/[^\s/,;'\"]+)+/?)")
_SETTING: Final = re.compile(r"\b\w*[A-Z]\w*=\S+")
_LONGEST_TEXT: Final = 200
_FAILED: Final = (
    "Nsight Systems failed to read events of its own recording: "
    "work, calls or ranges are missing, and where isn't known"
)
_CUPTI: Final = re.compile(r"Loaded CUPTI library: .*?(?:libcupti\.so\.([\d.]+\d)|cupti64_([\d.]+\d)\.dll)")
_WARNING: Final = 2


@dataclass(slots=True)
class Tally:
    """Rows left out while loading, by table."""

    invalid: Counter[str] = field(default_factory=Counter)
    untimed: Counter[str] = field(default_factory=Counter)
    unusable: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    nvtx_rows: int = 0
    not_text: int = 0
    cut: int = 0
    unnamed: int = 0
    without_process: int = 0
    without_device: int = 0
    without_thread: int = 0
    assumed_gpu: int = 0
    ambiguous_gpu: int = 0
    sliced_gpus: int = 0

    def notes(self) -> list[QualityNote]:
        """Return one note a kind of loss."""
        return [
            *_by_table(
                "invalid-times",
                "carry times that can't be (both zero, or an end before the start) and were left out",
                self.invalid,
            ),
            *_by_table("missing-times", "carry no time and were left out", self.untimed),
            *_by_table("unusable-rows", "hold text where a number belongs and were left out", self.unusable),
            *_by_table("rows-missing", "were deleted after the export or lost to damage", self.missing, "warn"),
            *_counted("names-not-text", "warn", "names are not text and are shown as unknown", self.not_text),
            *_counted("names-cut", "info", "names or NVTX texts are too long to keep whole and were cut", self.cut),
            *_counted("names-missing", "warn", "names are not in the export and are shown as unknown", self.unnamed),
            *_counted(
                "process-assumed",
                "warn",
                "GPU operations name no process and are taken for those of a single one",
                self.without_process,
            ),
            *_counted(
                "device-unknown",
                "warn",
                "GPU operations name no device that the capture knows and were left out",
                self.without_device,
            ),
            *_counted(
                "thread-unknown",
                "warn",
                "CUDA calls name no thread, so that nobody knows who made them, and were left out",
                self.without_thread,
            ),
        ]


def _by_table(code: str, what: str, counts: Counter[str], least: Level = "info") -> list[QualityNote]:
    """Return a note that names the tables concerned, as a warning where GPU work or calls are among them."""
    total = counts.total()
    if not total:
        return []
    tables = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()) if count)
    vital = {table.name for table in (*schema.OPERATIONS, schema.CALLS)}
    level: Level = "warn" if any(counts[name] for name in vital) else least
    return [QualityNote(code, level, f"{total:,} rows {what} ({tables})", total)]


def _counted(code: str, level: Level, what: str, count: int) -> list[QualityNote]:
    """Return a note about `count` things, or none."""
    return [QualityNote(code, level, f"{count:,} {what}", count)] if count else []


def cupti_version(diagnostics: pl.DataFrame) -> str | None:
    """Return the version of the CUPTI library that the collector says it loaded."""
    for text in diagnostics["text"].drop_nulls():
        if found := _CUPTI.search(text):
            return found[1] or _dotted(found[2])
    return None


def _dotted(number: str) -> str:
    """Turn the 132 of cupti64_132.dll into 13.2; newer names have the dots already."""
    return number if "." in number else f"{number[:-1]}.{number[-1]}"


def diagnostic_notes(source: Source, diagnostics: pl.DataFrame, nvtx_rows: int | None) -> list[QualityNote]:
    """Turn what the profiler said of its own run into notes, file paths taken out.

    Args:
        source: the export, asked whether it has the table at all.
        diagnostics: severity and text of DIAGNOSTIC_EVENT.
        nvtx_rows: how many rows of NVTX are in the export; as many as were collected are all of them. Null for
            a part of a capture, which lacks rows on purpose.
    """
    if not source.columns(schema.DIAGNOSTICS):
        return [
            QualityNote(
                "no-diagnostics",
                "info",
                "the export has no diagnostics, so whether records were dropped is unknown, not ruled out",
            )
        ]
    said: Counter[QualityNote] = Counter()
    others = unread = 0
    collected = [int(found[1]) for text in diagnostics["text"].drop_nulls() if (found := _NVTX_COLLECTED.search(text))]
    whole = nvtx_rows is None or (bool(collected) and sum(collected) == nvtx_rows)
    for severity, text in diagnostics[["severity", "text"]].drop_nulls().iter_rows():
        code = _diagnostic_code(severity, text)
        if code == "other-diagnostics":
            others += 1
        elif code == EVENTS_UNREAD:
            unread += 1
        elif code:
            harmless = _ABSENT.search(text) or (whole and _INCOMPLETE_NVTX.search(text))
            level: Level = "info" if harmless else "warn"
            said[QualityNote(code, level, f"Nsight Systems says: {scrubbed(text)}")] += 1
    notes = [QualityNote(note.code, note.level, note.message, count) for note, count in said.items()]
    return [
        *([QualityNote(EVENTS_UNREAD, "error", _FAILED, unread)] if unread else []),
        *notes,
        *_counted(
            "other-diagnostics", "info", "further warnings of Nsight Systems do not concern CUDA or NVTX", others
        ),
    ]


def _diagnostic_code(severity: int, text: str) -> str | None:
    """Sort a diagnostic text; null for one that says nothing about completeness."""
    if _UNREAD.search(text):
        return EVENTS_UNREAD
    if _LOST.search(text):
        return None if _NONE_LOST.search(text) else "records-lost"
    if _INCOMPLETE.search(text):
        return "events-incomplete"
    if severity < _WARNING:
        return None
    return "diagnostic" if _RELEVANT.search(text) else "other-diagnostics"


def telling(text: str) -> str | None:
    """Return what a diagnostic text says of the completeness of records or of CUPTI; null if it says nothing of them.

    The CUPTI library keeps its name and loses its folder.
    """
    if found := _CUPTI.search(text):
        return f"Loaded CUPTI library: libcupti.so.{found[1] or _dotted(found[2])}"
    if found := _UNREAD.search(text):
        return found[0]
    return text if _LOST.search(text) or _INCOMPLETE.search(text) or _RELEVANT.search(text) else None


def scrubbed(text: str) -> str:
    """Return a text on one line, without file paths, settings or control characters, and not endless."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    line = _SETTING.sub("<setting>", PATH.sub("<path>", line))
    return line if len(line) <= _LONGEST_TEXT else line[: _LONGEST_TEXT - 1] + "…"
