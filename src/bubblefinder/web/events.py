"""Every event of a capture as plain columns on disk, so that any window of any length is answered at once.

A worker writes the columns; the server maps them into memory and looks at a few pages of them, needing
neither the capture nor a frame library. A track's rows are sorted by start and carry two running values:
`reach`, the latest end so far, finds the first row that can touch a window; `covered`, the length of the
union of all rows before, gives the exact busy time between any two moments. So a window with too many
rows to draw is answered with shares of coverage, at the cost of one binary search a pixel.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bubblefinder.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

MAX_BARS: Final = 6_000
MAX_TRACKS: Final = 48
BINS: Final = 500
_LEAST_BARS: Final = 120
_NAME_CHARACTERS: Final = 96
_LANES: Final = 6
_COLUMNS: Final = ("start", "end", "reach", "covered", "name", "kind")
_INDEX: Final = "index.json"


@dataclass(frozen=True, slots=True)
class Events:
    """The events of one track before they are written: int64 times, ids of names, and kinds."""

    group: str
    title: str
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    name: NDArray[np.int32]
    kind: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Track:
    """A written track: rows [first, last) of the columns. `group` is nvtx, calls, inside, outside or gpu."""

    group: str
    title: str
    first: int
    last: int


def lanes(events: Events) -> Iterator[Events]:
    """Split events that nest into tracks, so that a parent lies on the track above its children."""
    order = np.lexsort((-events.end_ns, events.start_ns))
    for depth in range(_LANES):
        if not len(order):
            return
        start, end = events.start_ns[order], events.end_ns[order]
        free = np.ones(len(order), bool)
        if depth < _LANES - 1:
            free[1:] = start[1:] >= np.maximum.accumulate(end)[:-1]
        mine, order = order[free], order[~free]
        title = events.title if not depth else f"{events.title} ({depth + 1})"
        yield Events(
            events.group, title, events.start_ns[mine], events.end_ns[mine], events.name[mine], events.kind[mine]
        )


def write_tracks(tracks: Sequence[Events], names: Sequence[str], kinds: Sequence[str], folder: Path) -> None:
    """Write tracks and what their names and kinds say into a new folder.

    Of more than MAX_TRACKS tracks those with the most rows are kept; the index counts the others.
    """
    folder.mkdir(mode=0o700)
    kept = _kept(tracks)
    columns = [_columns(events) for events in kept]
    for position, column in enumerate(_COLUMNS):
        parts = [rows[position] for rows in columns]
        np.save(folder / f"{column}.npy", np.concatenate(parts) if parts else np.zeros(0, np.int64))
    ends = np.cumsum([len(events.start_ns) for events in kept], dtype=np.int64).tolist()
    written = [Track(e.group, e.title, end - len(e.start_ns), end) for e, end in zip(kept, ends, strict=True)]
    _write_names(names, folder)
    index = {
        "tracks": [asdict(track) for track in written],
        "kinds": list(kinds),
        "start_ns": min((int(e.start_ns[0]) for e in kept), default=0),
        "end_ns": max((int(rows[2][-1]) for rows in columns), default=0),
        "dropped": sum(len(events.start_ns) > 0 for events in tracks) - len(kept),
    }
    (folder / _INDEX).write_text(json.dumps(index), encoding="utf-8")


def window(folder: Path, start_ns: int | None, end_ns: int | None) -> dict[str, Any]:
    """Return what to draw between two moments, or of the whole capture where they are null.

    Every track has either `bars`, rows of [start - window start, length, name, kind] in ns with indexes
    into `names` and `kinds`, or `shares`, its coverage in thousandths for equal slices of the window.
    """
    index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
    start = index["start_ns"] if start_ns is None else start_ns
    end = max(index["end_ns"] if end_ns is None else end_ns, start + 1)
    columns = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _COLUMNS}
    tracks = [Track(**track) for track in index["tracks"]]
    budget = max(_LEAST_BARS, MAX_BARS // max(len(tracks), 1))
    drawn = [_drawn(track, columns, start, end, budget) for track in tracks]
    used = sorted({bar[2] for track in drawn for bar in track.get("bars", ())})
    place = {name: position for position, name in enumerate(used)}
    for track in drawn:
        for bar in track.get("bars", ()):
            bar[2] = place[bar[2]]
    whole = {key: index[key] for key in ("kinds", "dropped")} | {"capture": [index["start_ns"], index["end_ns"]]}
    return whole | {"start_ns": start, "end_ns": end, "tracks": drawn, "names": list(_read_names(used, folder))}


def _kept(tracks: Sequence[Events]) -> list[Events]:
    filled = [events for events in tracks if len(events.start_ns)]
    if len(filled) <= MAX_TRACKS:
        return filled
    least = sorted((len(events.start_ns) for events in filled), reverse=True)[MAX_TRACKS - 1]
    return [events for events in filled if len(events.start_ns) >= least][:MAX_TRACKS]


def _columns(events: Events) -> tuple[NDArray[Any], ...]:
    order = np.lexsort((events.end_ns, events.start_ns))
    start, end = events.start_ns[order], events.end_ns[order]
    reach = np.maximum.accumulate(end)
    before = np.concatenate(([start[0]], reach[:-1]))
    added = np.maximum(reach - np.maximum(start, before), 0)
    covered = np.cumsum(added) - added
    return start, end, reach, covered, events.name[order], events.kind[order]


def _drawn(track: Track, columns: dict[str, NDArray[Any]], start_ns: int, end_ns: int, budget: int) -> dict[str, Any]:
    rows = {name: column[track.first : track.last] for name, column in columns.items()}
    first = int(np.searchsorted(rows["reach"], start_ns, "right"))
    last = int(np.searchsorted(rows["start"], end_ns, "left"))
    shown = {"group": track.group, "title": track.title, "rows": max(last - first, 0)}
    if last - first > budget:
        return shown | {"shares": _shares(rows, start_ns, end_ns)}
    piece = {name: rows[name][first:last] for name in ("start", "end", "name", "kind")}
    inside = piece["end"] > start_ns
    bars = zip(
        (piece["start"][inside] - start_ns).tolist(),
        (piece["end"] - piece["start"])[inside].tolist(),
        piece["name"][inside].tolist(),
        piece["kind"][inside].tolist(),
        strict=True,
    )
    return shown | {"bars": [list(bar) for bar in bars]}


def _shares(rows: dict[str, NDArray[Any]], start_ns: int, end_ns: int) -> list[int]:
    """Return the coverage of equal slices in thousandths."""
    edges = start_ns + (np.arange(BINS + 1, dtype=np.int64) * (end_ns - start_ns)) // BINS
    until = np.searchsorted(rows["start"], edges, "left")
    last = np.maximum(until - 1, 0)
    reach, begun = rows["reach"][last], until > 0
    through_last = rows["covered"][last] + _added(rows, last)
    busy = np.where(begun, through_last - np.maximum(reach - edges, 0), 0)
    lengths = np.maximum(np.diff(edges), 1)
    return np.minimum(1000 * np.diff(busy) // lengths, 1000).tolist()  # type: ignore[no-any-return]


def _added(rows: dict[str, NDArray[Any]], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what rows add to the union of those before them."""
    before = np.where(at > 0, rows["reach"][np.maximum(at - 1, 0)], rows["start"][at])
    added: NDArray[np.int64] = np.maximum(rows["reach"][at] - np.maximum(rows["start"][at], before), 0)
    return added


def _write_names(names: Iterable[str], folder: Path) -> None:
    encoded = [printable(name, _NAME_CHARACTERS).encode() for name in names]
    (folder / "names.bin").write_bytes(b"".join(encoded))
    np.save(folder / "names.npy", np.cumsum([0, *map(len, encoded)], dtype=np.int64))


def _read_names(wanted: Iterable[int], folder: Path) -> Iterator[str]:
    offsets = np.load(folder / "names.npy", mmap_mode="r")
    with (folder / "names.bin").open("rb") as file:
        for name in wanted:
            file.seek(int(offsets[name]))
            yield file.read(int(offsets[name + 1] - offsets[name])).decode()
