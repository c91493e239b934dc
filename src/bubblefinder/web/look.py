"""Questions about a run's events: where a name comes next, and what lies in a range."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bubblefinder.web.events import Rows, opened, read_names

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


MOST_NAMES: Final = 40
_SEARCHED: Final = ("nvtx", "calls", "gpu")


def find(folder: Path, text: str, at_ns: int) -> dict[str, Any]:
    """Return how many events have `text` in their name, and those next to a moment.

    `total` counts them and `before` those that start at or before the moment; `next` starts after it, `previous`
    is the last that starts before it; both have `start_ns`, `length_ns`, `track` and `name`, or are null.
    """
    with opened(folder) as stored:
        names = _names_with(folder, text)
        total = before = 0
        following: dict[str, Any] | None = None
        previous: dict[str, Any] | None = None
        for number, rows in enumerate(stored.tracks):
            if rows.track.group not in _SEARCHED or not len(names):
                continue
            for piece in rows.every():
                found = piece[np.isin(piece["name"], names)]
                total += len(found)
                before += int((found["start"] <= at_ns).sum())
                later, earlier = found[found["start"] > at_ns], found[found["start"] < at_ns]
                if len(later) and (following is None or later["start"][0] < following["start_ns"]):
                    following = _told(later[0], number)
                if len(earlier) and (previous is None or earlier["start"][-1] > previous["start_ns"]):
                    previous = _told(earlier[-1], number)
        for one in filter(None, (following, previous)):
            (one["name"],) = read_names([one["name"]], folder)
        return {"total": total, "before": before, "next": following, "previous": previous}


def sums(folder: Path, start_ns: int, end_ns: int) -> dict[str, Any]:
    """Return what lies between two moments: coverage by track, and time by name of the longest names.

    `tracks` have `title`, `group`, `events` and `covered_ns`, the union; `names` have `name`, `group`, `events` and
    `total_ns`, the sum of what lies inside the range.
    """
    with opened(folder) as stored:
        tracks, totals, counts = [], Counter[tuple[str, int]](), Counter[tuple[str, int]]()
        for rows in stored.tracks:
            events = _add(rows, start_ns, end_ns, totals, counts)
            covered = np.diff(rows.busy_until(np.array([start_ns, end_ns])))
            shown = {"title": rows.track.title, "group": rows.track.group, "events": events}
            tracks.append(shown | {"covered_ns": int(covered[0])})
        most = totals.most_common(MOST_NAMES)
        texts = read_names([name for (_, name), _ in most], folder)
        names = [
            {"name": text, "group": group, "events": counts[group, name], "total_ns": total}
            for ((group, name), total), text in zip(most, texts, strict=True)
        ]
        return {"start_ns": start_ns, "end_ns": end_ns, "tracks": tracks, "names": names}


def _add(
    rows: Rows, start_ns: int, end_ns: int, totals: Counter[tuple[str, int]], counts: Counter[tuple[str, int]]
) -> int:
    """Add the rows of a track to the sums by name and return how many there are."""
    group, events = rows.track.group, 0
    for piece in rows.within(start_ns, end_ns):
        lengths = np.minimum(piece["end"], end_ns) - np.maximum(piece["start"], start_ns)
        names, places = np.unique(piece["name"], return_inverse=True)
        spent = np.zeros(len(names), np.int64)
        np.add.at(spent, places, np.maximum(lengths, 0))
        for name, total, count in zip(names.tolist(), spent.tolist(), np.bincount(places).tolist(), strict=True):
            totals[group, name] += total
            counts[group, name] += count
        events += len(piece)
    return events


def _names_with(folder: Path, text: str) -> NDArray[np.int64]:
    """Return the positions of the names that hold a text, whatever its case."""
    offsets = np.load(folder / "names.npy", mmap_mode="r")
    wanted = text.casefold()
    named = enumerate(read_names(range(len(offsets) - 1), folder))
    return np.array([number for number, name in named if wanted in name.casefold()], np.int64)


def _told(row: Any, track: int) -> dict[str, Any]:  # noqa: ANN401 - a record
    start = int(row["start"])
    return {"start_ns": start, "length_ns": int(row["end"]) - start, "track": track, "name": int(row["name"])}
