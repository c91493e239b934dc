"""Every event of a capture as plain rows on disk, so that any window of any length is answered at once.

A worker writes the rows; the server reads a few blocks of them, needing neither the capture nor a frame
library, nor memory that grows with the capture. A track's rows are sorted by start and carry two running
values: `reach`, the latest end so far, finds the first row that can touch a window; `covered`, the length
of the union of all rows so far, gives the exact busy time between any two moments. So a window with too
many rows to draw is answered with shares of coverage, at the cost of one block a slice.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING, Any, Final, Literal

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
_ROW: Final = np.dtype(
    [
        ("start", "<i8"),
        ("end", "<i8"),
        ("reach", "<i8"),
        ("covered", "<i8"),
        ("name", "<i4"),
        ("flow", "<i4"),
        ("kind", "u1"),
    ]
)
LAYOUT: Final = 2
"""Of the files; those of another are not read."""
MAX_STEPS: Final = 400
"""Steps of one window: more would be narrower than their numbers."""
_BLOCK: Final = 256
_PIECE: Final = 65_536
_INDEX: Final = "index.json"
_ROWS: Final = "rows.bin"
_HEADS: Final = "heads.npy"
_STEPS: Final = "steps.npy"


@dataclass(frozen=True, slots=True)
class Events:
    """The events of one track before they are written: int64 times, ids of names, kinds, and which launch they are of.

    `flow` is the position of the launch call, for the call itself and for what it launched; -1 for others. Leading
    tracks, those of the first rank, are kept where not all can be.
    """

    group: str
    title: str
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    name: NDArray[np.int32]
    kind: NDArray[np.uint8]
    flow: NDArray[np.int32] | None = None
    is_leading: bool = False

    def only(self, rows: NDArray[Any], title: str) -> Events:
        """Return some of the events under another title."""
        flow = None if self.flow is None else self.flow[rows]
        columns = (self.start_ns[rows], self.end_ns[rows], self.name[rows], self.kind[rows])
        return Events(self.group, title, *columns, flow, self.is_leading)


@dataclass(frozen=True, slots=True)
class Track:
    """A written track: rows [first, last), blocks from `block` on; `group` is nvtx, calls, inside, outside or gpu."""

    group: str
    title: str
    first: int
    last: int
    block: int

    @property
    def blocks(self) -> int:
        """How many blocks its rows fill."""
        return -(-(self.last - self.first) // _BLOCK)


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
        yield events.only(mine, title)


def write_tracks(
    tracks: Sequence[Events],
    names: Sequence[str],
    kinds: Sequence[str],
    folder: Path,
    steps: Sequence[tuple[int, int, int]] = (),
) -> None:
    """Write tracks and what their names and kinds say into a new folder.

    Of more than MAX_TRACKS tracks the leading ones and those with the most rows are kept; the index counts the others.
    `steps` are (start, end, number) in order of time, 0 for a window that is no decode step.
    """
    folder.mkdir(mode=0o700)
    kept = _kept(tracks)
    written: list[Track] = []
    heads = [np.zeros(0, _ROW)]
    bounds: list[tuple[int, int]] = []
    with (folder / _ROWS).open("wb") as file:
        for events in kept:
            rows = _rows(events)
            rows.tofile(file)
            first = written[-1].last if written else 0
            written.append(Track(events.group, events.title, first, first + len(rows), sum(map(len, heads))))
            heads.append(rows[::_BLOCK].copy())
            bounds.append((int(rows["start"][0]), int(rows["reach"][-1])))
    np.save(folder / _HEADS, np.concatenate(heads))
    np.save(folder / _STEPS, np.array(steps, np.int64).reshape(-1, 3))
    _write_names(names, folder)
    index = {
        "layout": LAYOUT,
        "tracks": [asdict(track) for track in written],
        "kinds": list(kinds),
        "start_ns": min((start for start, _ in bounds), default=0),
        "end_ns": max((end for _, end in bounds), default=0),
        "dropped": sum(len(events.start_ns) > 0 for events in tracks) - len(kept),
    }
    (folder / _INDEX).write_text(json.dumps(index), encoding="utf-8")


def window(folder: Path, start_ns: int | None, end_ns: int | None) -> dict[str, Any]:
    """Return what to draw between two moments, or of the whole capture where they are null.

    Every track has either `bars`, rows of [start - window start, length, name, kind, flow] in ns with indexes
    into `names` and `kinds`, or `shares`, its coverage in thousandths for equal slices of the window.
    """
    with opened(folder) as stored:
        start = stored.index["start_ns"] if start_ns is None else start_ns
        end = max(stored.index["end_ns"] if end_ns is None else end_ns, start + 1)
        budget = max(_LEAST_BARS, MAX_BARS // max(len(stored.tracks), 1))
        drawn = [_drawn(rows, start, end, budget) for rows in stored.tracks]
        used = sorted({bar[2] for track in drawn for bar in track.get("bars", ())})
        place = {name: position for position, name in enumerate(used)}
        for track in drawn:
            for bar in track.get("bars", ()):
                bar[2] = place[bar[2]]
        whole = {key: stored.index[key] for key in ("kinds", "dropped")} | {"capture": stored.capture}
        shown = {"start_ns": start, "end_ns": end, "tracks": drawn, "names": list(read_names(used, folder))}
        return whole | shown | {"steps": _steps(folder, start, end)}


@dataclass(frozen=True, slots=True)
class Stored:
    """The events of a run, ready to be read."""

    index: dict[str, Any]
    tracks: list[Rows]

    @property
    def capture(self) -> list[int]:
        """The first and the last moment, in ns."""
        return [self.index["start_ns"], self.index["end_ns"]]


@contextmanager
def opened(folder: Path) -> Iterator[Stored]:
    """Open a folder of events.

    Raises:
        OSError: it isn't there.
        ValueError: it is damaged, or was written by another version.
    """
    index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
    if index.get("layout") != LAYOUT:
        raise ValueError(index.get("layout"))
    heads = np.load(folder / _HEADS)
    with (folder / _ROWS).open("rb") as file:
        tracks = [Track(**track) for track in index["tracks"]]
        yield Stored(index, [Rows(file, one, heads[one.block : one.block + one.blocks]) for one in tracks])


def _steps(folder: Path, start_ns: int, end_ns: int) -> list[list[int]]:
    """Return the steps that touch a window as [start - window start, length, number], or none if they are too many."""
    steps = np.load(folder / _STEPS)
    first, last = np.searchsorted(steps[:, 1], start_ns, "right"), np.searchsorted(steps[:, 0], end_ns, "left")
    mine = steps[first:last]
    if len(mine) > MAX_STEPS:
        return []
    drawn: list[list[int]] = np.column_stack((mine[:, 0] - start_ns, mine[:, 1] - mine[:, 0], mine[:, 2])).tolist()
    return drawn


def _kept(tracks: Sequence[Events]) -> list[Events]:
    filled = [events for events in tracks if len(events.start_ns)]
    ordered = sorted(filled, key=lambda events: (events.is_leading, len(events.start_ns)), reverse=True)
    kept = {id(events) for events in ordered[:MAX_TRACKS]}
    return [events for events in filled if id(events) in kept]


def _rows(events: Events) -> NDArray[Any]:
    rows = np.empty(len(events.start_ns), _ROW)
    rows["start"], rows["end"], rows["name"], rows["kind"] = events.start_ns, events.end_ns, events.name, events.kind
    rows["flow"] = -1 if events.flow is None else events.flow
    if (events.start_ns[1:] < events.start_ns[:-1]).any():
        rows = rows[np.argsort(events.start_ns, kind="stable")]
    rows["reach"] = np.maximum.accumulate(rows["end"])
    before = np.concatenate((rows["start"][:1], rows["reach"][:-1]))
    rows["covered"] = np.cumsum(np.maximum(rows["reach"] - np.maximum(rows["start"], before), 0))
    return rows


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one track in an open file; `heads` are the first rows of its blocks."""

    file: IO[bytes]
    track: Track
    heads: NDArray[Any]

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Return rows [first, last) of the track."""
        last = min(last, self.track.last - self.track.first)
        wanted = max(last - first, 0) * _ROW.itemsize
        content = os.pread(self.file.fileno(), wanted, (self.track.first + first) * _ROW.itemsize)
        return np.frombuffer(content, _ROW)

    def every(self) -> Iterator[NDArray[Any]]:
        """Return all rows, a piece at a time."""
        return self._pieces(0, self.track.last - self.track.first)

    def within(self, start_ns: int, end_ns: int) -> Iterator[NDArray[Any]]:
        """Return the rows that touch a window, a piece at a time."""
        for rows in self._pieces(self.place("reach", start_ns, "right"), self.place("start", end_ns, "left")):
            yield rows[rows["end"] > start_ns]

    def _pieces(self, first: int, last: int) -> Iterator[NDArray[Any]]:
        for begin in range(first, last, _PIECE):
            yield self.read(begin, min(begin + _PIECE, last))

    def block(self, number: int) -> NDArray[Any]:
        """Return the rows of one block."""
        return self.read(number * _BLOCK, (number + 1) * _BLOCK)

    def place(self, column: str, value: int, side: Literal["left", "right"]) -> int:
        """Return where `value` belongs in a sorted column."""
        number = int(np.searchsorted(self.heads[column], value, side)) - 1
        if number < 0:
            return 0
        return number * _BLOCK + int(np.searchsorted(self.block(number)[column], value, side))

    def busy_until(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the length of the union of all rows, cut off at each moment."""
        busy = np.zeros(len(moments), np.int64)
        numbers = np.searchsorted(self.heads["start"], moments, "left") - 1
        for number in np.unique(numbers[numbers >= 0]).tolist():
            mine = numbers == number
            rows = self.block(number)
            last = rows[np.searchsorted(rows["start"], moments[mine], "left") - 1]
            busy[mine] = last["covered"] - np.maximum(last["reach"] - moments[mine], 0)
        return busy


def _drawn(rows: Rows, start_ns: int, end_ns: int, budget: int) -> dict[str, Any]:
    first, last = rows.place("reach", start_ns, "right"), rows.place("start", end_ns, "left")
    shown = {"group": rows.track.group, "title": rows.track.title, "rows": max(last - first, 0)}
    if last - first > budget:
        return shown | {"shares": _shares(rows, start_ns, end_ns)}
    piece = rows.read(first, last)
    inside = piece[piece["end"] > start_ns]
    bars = zip(
        (inside["start"] - start_ns).tolist(),
        (inside["end"] - inside["start"]).tolist(),
        inside["name"].tolist(),
        inside["kind"].tolist(),
        inside["flow"].tolist(),
        strict=True,
    )
    return shown | {"bars": [list(bar) for bar in bars]}


def _shares(rows: Rows, start_ns: int, end_ns: int) -> list[int]:
    """Return the coverage of equal slices in thousandths."""
    edges = start_ns + (np.arange(BINS + 1, dtype=np.int64) * (end_ns - start_ns)) // BINS
    lengths = np.maximum(np.diff(edges), 1)
    shares: list[int] = np.minimum(1000 * np.diff(rows.busy_until(edges)) // lengths, 1000).tolist()
    return shares


def _write_names(names: Iterable[str], folder: Path) -> None:
    encoded = [printable(name, _NAME_CHARACTERS).encode() for name in names]
    (folder / "names.bin").write_bytes(b"".join(encoded))
    np.save(folder / "names.npy", np.cumsum([0, *map(len, encoded)], dtype=np.int64))


def read_names(wanted: Iterable[int], folder: Path) -> Iterator[str]:
    """Return the texts of names by their position."""
    offsets = np.load(folder / "names.npy", mmap_mode="r")
    with (folder / "names.bin").open("rb") as file:
        for name in wanted:
            file.seek(int(offsets[name]))
            yield file.read(int(offsets[name + 1] - offsets[name])).decode()
