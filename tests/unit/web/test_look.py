from __future__ import annotations

import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.web import events
from bubblefinder.web.events import Events, write_tracks
from bubblefinder.web.look import find, sums
from tests.web import asynchronous, site

NAMES = ["alpha", "beta", "alphabet"]
ROWS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 50), st.integers(0, 2)), min_size=1, max_size=30)


def written(rows: list[tuple[int, int, int]], folder: Path) -> Path:
    start, length, name = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    kinds = np.zeros(len(rows), np.uint8)
    write_tracks([Events("gpu", "t", start, start + length, name.astype(np.int32), kinds)], NAMES, ["kernel"], folder)
    return folder


@given(ROWS, st.integers(-10, 360), st.sampled_from(["ALPHA", "bet", "gamma", "alphabet"]))
def test_what_is_found_is_next_to_the_moment(rows: list[tuple[int, int, int]], at: int, text: str) -> None:
    matching = [start for start, _, name in rows if text.casefold() in NAMES[name]]
    with tempfile.TemporaryDirectory() as place, mock.patch.multiple(events, _BLOCK=4, _PIECE=3):
        said = find(written(rows, Path(place) / "e"), text, at)
    assert (said["total"], said["before"]) == (len(matching), sum(start <= at for start in matching))
    assert (said["next"] or {}).get("start_ns") == min((start for start in matching if start > at), default=None)
    assert (said["previous"] or {}).get("start_ns") == max((start for start in matching if start < at), default=None)
    for one in filter(None, (said["next"], said["previous"])):
        assert text.casefold() in one["name"]


@given(ROWS, st.integers(0, 300), st.integers(1, 100))
def test_sums_are_of_what_lies_inside(rows: list[tuple[int, int, int]], start: int, length: int) -> None:
    end = start + length
    with tempfile.TemporaryDirectory() as place, mock.patch.multiple(events, _BLOCK=4, _PIECE=3):
        said = sums(written(rows, Path(place) / "e"), start, end)
    inside = [(min(a + b, end) - max(a, start), name) for a, b, name in rows if a < end and a + b > start]
    totals = {one["name"]: one["total_ns"] for one in said["names"] if one["total_ns"]}
    assert totals == {
        NAMES[name]: total for name in range(3) if (total := sum(spent for spent, other in inside if other == name)) > 0
    }
    covered = np.zeros(500, bool)
    for a, b, _ in rows:
        covered[a : a + b] = True
    assert said["tracks"][0]["covered_ns"] == int(covered[start:end].sum())


@pytest.mark.parametrize(
    "query", ["find", "find?text=", "find?text=%20", "sums", "sums?start=1", "sums?start=5&end=5", "find?text=a&at=x"]
)
@asynchronous
async def test_a_question_that_is_none_is_refused(tmp_path: Path, query: str) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put()
        await here.settled(run_id)
        assert (await here.client.get(f"/api/runs/{run_id}/{query}")).status_code == 400
