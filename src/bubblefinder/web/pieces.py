"""What was made of single runs, such as a row of the list, kept for as long as what it was made from is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST: Final = 5_000
"""A piece takes up to 2 KB: 10 MB in all."""


class Pieces:
    """The latest pieces by what they are and what they were made from, so that a change costs what it changes."""

    def __init__(self) -> None:
        """Begin with none."""
        self._kept: dict[tuple[str, ...], tuple[tuple[object, ...], str]] = {}

    def of(self, key: tuple[str, ...], made_from: tuple[object, ...], make: Callable[..., str]) -> str:
        """Return a piece; it is made, by a call of `make` with `made_from`, if it wasn't from equal things before."""
        known = self._kept.get(key)
        if known is not None and known[0] == made_from:
            return known[1]
        made = make(*made_from)
        self._kept[key] = made_from, made
        if len(self._kept) > _MOST:
            del self._kept[next(iter(self._kept))]
        return made
