"""What a capture holds of people, machines and programs: kinds and counts, never the values."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from bubblefinder.share.scrub import NEUTRAL_SERIAL, THREADS
from bubblefinder.share.tables import ENUMS, shared_columns
from bubblefinder.trace.quality import PATH
from bubblefinder.trace.schema import DIAGNOSTICS, NVTX, STRING_IDS, THREAD_NAMES, Source
from bubblefinder.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


SCHEMA: Final = "bubblefinder.privacy/1"
_PAIRS: Final = ("META_DATA_CAPTURE", "META_DATA_EXPORT", "EXPORT_META_DATA", "TARGET_INFO_SYSTEM_ENV")
_BY_NAME: Final = (
    ("environment variables", re.compile(r"ENVIRONMENT|\bENV\b", re.IGNORECASE)),
    ("command lines", re.compile(r"COMMAND|ARGUMENT", re.IGNORECASE)),
    ("folders and file names", re.compile(r"_?DIR\b|WORKING|_?PATH|_FILE\b|FILENAME", re.IGNORECASE)),
    ("user names", re.compile(r"USER", re.IGNORECASE)),
    ("host names and addresses", re.compile(r"HOST|ADDRESS|DOMAIN_?NAME|NODE_?NAME|DISPLAY_NAME", re.IGNORECASE)),
    ("ids of machine or session", re.compile(r"UUID|SERIAL|MAC\b", re.IGNORECASE)),
)
_BY_TABLE: Final = {
    "ProcessStreams": "captured output",
    "ANALYSIS_FILE": "files kept in the capture",
    "OSRT_FILE_ACCESS_EVENTS": "file accesses",
    "OSRT_FILE_ACCESS_DESCRIPTORS": "file accesses",
}
_BY_COLUMN: Final = {
    ("PROCESSES", "name"): "processes of the machine",
    ("NVTX_EVENTS", "jsonText"): "data that the program noted (NVTX)",
    ("NVTX_EVENTS", "binaryData"): "data that the program noted (NVTX)",
    ("TARGET_INFO_SESSION_START_TIME", "localTime"): "time zone",
    ("TARGET_INFO_SESSION_START_TIME", "utcTime"): "time zone",
}
_SERIALS: Final = ("uuid", "busLocation", "luid", "serialNumber", "macAddress", "guid")
_ADVICE: Final = (
    "`bubblefinder slice TRACE OUT.sqlite --scrub` writes a capture without these.",
    "Names of kernels, API calls and NVTX ranges stay, without paths: look whether yours may be shown.",
)
_ENVIRONMENT: Final = re.compile(r"(?:^|\0|\n)[A-Z][A-Z0-9_]{2,}=")
_OWN: Final = re.compile(
    r"(?:EXPORT_)?(?:HOST|USER|HOST_?NAME)|(?:PROCESS_\d+:)?USER_?NAME|DEVICE_DISPLAY_NAME", re.IGNORECASE
)
_SETTING_OF_USER: Final = re.compile(r"\b(?:USER|LOGNAME|HOSTNAME|HOST)=\"?([^\s;\"]+)")


@dataclass(frozen=True, slots=True)
class Personal:
    """One kind of personal data: what it is, in which table, and how many values there are."""

    kind: str
    table: str
    count: int


def personal_data(source: Source) -> list[Personal]:
    """Return the kinds of personal data that a capture holds, by kind and table."""
    found: Counter[tuple[str, str]] = Counter()
    for table in sorted(source.tables):
        found.update((kind, table) for kind in _kinds(source, table))
    return [Personal(kind, table, count) for (kind, table), count in sorted(found.items())]


def listed(found: Iterable[Personal]) -> list[str]:
    """Return what was found as lines to read, one a kind, and what to do about it."""
    kinds: dict[str, list[str]] = {}
    for one in found:
        kinds.setdefault(one.kind, []).append(f"{one.count:,} in {printable(one.table, 60)}")
    if not kinds:
        return ["It holds no kind of personal data that bubblefinder knows."]
    lines = (f"{kind}: {', '.join(places)}" for kind, places in sorted(kinds.items()))
    return [*lines, "", *_ADVICE]


def render(found: Sequence[Personal]) -> str:
    """Return what was found as JSON."""
    content = msgspec.json.encode({"schema": SCHEMA, "personal": found}, order="sorted")
    return msgspec.json.format(content, indent=1).decode() + "\n"


def personal_words(source: Source) -> set[str]:
    """Return the words by which a capture calls its user and its machine."""
    pairs = [pair for table in _PAIRS if table in source.tables for pair in _pairs(source, table)]
    words = {value for name, value in pairs if _OWN.fullmatch(name)}
    return words | {found for _, value in pairs for found in _SETTING_OF_USER.findall(value)}


def _kinds(source: Source, table: str) -> Iterator[str]:
    """Yield the kind of each personal value of a table."""
    columns = [column.name for column in source.layout(table)]
    if table in _PAIRS:
        yield from (kind for name, _ in _pairs(source, table) for kind, sign in _BY_NAME if sign.search(name))
    elif table == STRING_IDS:
        yield from _in_texts(_values(source, table, "value"))
    elif table == THREAD_NAMES.name:
        yield from _threads(source)
    elif table in _BY_TABLE:
        yield from (_BY_TABLE[table] for _ in _values(source, table, columns[0]))
    elif not table.startswith((ENUMS, "sqlite_")) and not shared_columns(table):
        yield "tables that bubblefinder doesn't know"
    for column in columns:
        kind = "serial numbers and addresses of hardware" if column in _SERIALS else _BY_COLUMN.get((table, column))
        yield from (
            (kind for value in _values(source, table, column) if value and not _is_neutral(value)) if kind else ()
        )
    if table in {NVTX.name, DIAGNOSTICS.name}:
        yield from _in_texts(_values(source, table, "text"))


def _is_neutral(value: object) -> bool:
    """Tell a number that scrubbing put in place of a serial."""
    return isinstance(value, str) and bool(NEUTRAL_SERIAL.fullmatch(value))


def _values(source: Source, table: str, column: str) -> Iterator[object]:
    return (value for (value,) in source.records(table, [column]))


def _threads(source: Source) -> Iterator[str]:
    """Yield once for each thread whose name was not given by a library."""
    numbers = [number for number in _values(source, THREAD_NAMES.name, "nameId") if isinstance(number, int)]
    texts = source.strings(numbers).texts
    yield from ("thread names" for number in numbers if not THREADS.fullmatch(texts.get(number, "")))


def _in_texts(texts: Iterable[object]) -> Iterator[str]:
    for text in texts:
        if not isinstance(text, str):
            continue
        if _ENVIRONMENT.search(text):
            yield "environment variables"
        elif PATH.search(text):
            yield "paths inside texts"


def _pairs(source: Source, table: str) -> list[tuple[str, str]]:
    pairs = source.records(table, ["name", "value"])
    return [(name, value) for name, value in pairs if isinstance(name, str) and isinstance(value, str)]
