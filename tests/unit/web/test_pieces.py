from __future__ import annotations

from bubblefinder.web import pieces
from bubblefinder.web.pieces import Pieces


def test_a_piece_is_made_once_for_as_long_as_it_is_made_from_the_same() -> None:
    made = []

    def make(*given: object) -> str:
        made.append(given)
        return repr(given)

    kept = Pieces()
    for given in ((1, "a"), (1, "a"), (2, "a"), (2, "a"), (1, "a")):
        assert kept.of(("row", "x"), given, make) == repr(given)
    assert made == [(1, "a"), (2, "a"), (1, "a")]


def test_what_is_kept_is_bounded() -> None:
    kept = Pieces()
    for number in range(pieces._MOST + 10):
        kept.of((str(number),), (), str)
    assert len(kept._kept) == pieces._MOST
    assert ("0",) not in kept._kept
