from __future__ import annotations

import gzip
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.web import pieces
from bubblefinder.web.pieces import Pieced, Pieces, piece
from bubblefinder.web.shelf import StoredRun
from bubblefinder.web.store import new_id

if TYPE_CHECKING:
    import pytest

RUNS = [StoredRun(id=f"{Random(number).getrandbits(128):032x}", name=f"run {number}") for number in range(300)]


def test_a_piece_is_made_once_for_as_long_as_it_is_made_from_the_same() -> None:
    made = []

    def make(*given: object) -> str:
        made.append(given)
        return repr(given)

    kept = Pieces()
    for given_now in ((1, "a"), (1, "a"), (2, "a"), (2, "a"), (1, "a")):
        assert kept.of(("row", "x"), given_now, make) == repr(given_now)
    assert made == [(1, "a"), (2, "a"), (1, "a")]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Pieces()
    for number in range(pieces._MOST + 10):
        kept.of((str(number),), (), str)
    assert len(kept._kept) == pieces._MOST
    assert ("0",) not in kept._kept
    monkeypatch.setattr(pieces, "_MOST_BYTES", 1_000)
    for number in range(100):
        kept.of((str(number),), (), lambda: piece("x" * 100))
    assert 0 < kept._bytes <= 1_000
    assert kept._bytes == sum(map(pieces._size, [made for _, made, _ in kept._kept.values()]))


@given(st.lists(st.text()), st.sampled_from(["", ",", ", "]))
def test_groups_unpack_to_what_they_are_made_of(texts: list[str], glue: str) -> None:
    items = [(StoredRun(id=new_id(), name=text), text) for text in texts]
    answer = Pieced(Pieces().groups(("row",), items, lambda _, text: text, glue), "text/plain")
    assert bytes(answer.body) == glue.join(texts).encode() == gzip.decompress(answer.gzipped())


@given(st.integers(0, 299), st.sampled_from(["changed", "gone", "come"]))
def test_a_change_of_a_run_costs_its_text_and_its_group(place: int, change: str) -> None:
    kept, made, now = Pieces(), list[str](), list(RUNS)

    def make(run: StoredRun) -> str:
        made.append(run.id)
        return run.name

    before = kept.groups(("row",), [(run,) for run in now], make)
    assert len(made) == len(now)
    made.clear()
    if change == "gone":
        del now[place]
    else:
        new = replace(now[place], note="new") if change == "changed" else StoredRun(id=new_id(), name="come")
        now[place : place + (change == "changed")] = [new]
    after = kept.groups(("row",), [(run,) for run in now], make)
    assert len(made) == (change != "gone")
    assert len({id(one) for one in after} - {id(one) for one in before}) <= 2
