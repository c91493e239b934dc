"""Pieces of answers, such as a row of the list: kept while what they were made from is the same, and packed apart.

A list of 1,000 runs changes by a run at a time. What is made anew for that is the run's row and its group: a few
neighbours that are packed together. Packed groups can follow each other in one gzip stream, as RFC 1951 has it.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

K = TypeVar("K")
T = TypeVar("T", bound="str | Piece | tuple[Piece, ...]")
_MOST: Final = 5_000
"""A row takes up to 2 KB, a group of 8 rows 10 KB."""
_MOST_BYTES: Final = 16 << 20
"""The server itself needs about 60 MiB."""
_LEVEL: Final = 1
"""A list of 70 KB packs to 8 KB; higher levels take twice as long to save 1 KB of it."""
_HEAD: Final = bytes.fromhex("1f8b08000000000004ff")
_TAIL: Final = bytes.fromhex("0300")
"""The head of a gzip file that says neither name nor time, and the empty last block of what it packs (RFC 1952)."""
_LAST_OF_GROUP: Final = ("0", "8")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer, as it is and packed without regard to what comes before it."""

    plain: bytes
    deflated: bytes


def piece(text: str) -> Piece:
    """Return a text as a part of an answer."""
    plain = text.encode()
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return Piece(plain, packer.compress(plain) + packer.flush(zlib.Z_SYNC_FLUSH))


class Pieced(Response):
    """An answer made of pieces."""

    def __init__(self, pieces: Sequence[Piece], media_type: str) -> None:
        self.pieces = pieces
        super().__init__(b"".join([one.plain for one in pieces]), media_type=media_type)

    def gzipped(self) -> bytes:
        """Return the body as a gzip file."""
        body = bytes(self.body)
        end = struct.pack("<LL", zlib.crc32(body), len(body) & 0xFFFFFFFF)
        return b"".join([_HEAD, *(one.deflated for one in self.pieces), _TAIL, end])


class Kept:
    """The latest `most` that were made, while what they were made from stays; their bytes are bounded."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[tuple[str, ...], tuple[object, Any, int]] = {}
        self._bytes = 0

    def get(self, key: tuple[str, ...], made_from: object) -> Any:  # noqa: ANN401 - whatever was put there
        """Return what was made before, if from equal things; null if it wasn't."""
        known = self._kept.get(key)
        return known[1] if known is not None and known[0] == made_from else None

    def put(self, key: tuple[str, ...], made_from: object, made: K, size: int) -> K:
        """Keep what was made and takes about `size` bytes, in place of the oldest if need be, and return it."""
        self._drop(key)
        self._kept[key] = made_from, made, size
        self._bytes += size
        while len(self._kept) > self._most or self._bytes > _MOST_BYTES:
            self._drop(next(iter(self._kept)))
        return made

    def _drop(self, key: tuple[str, ...]) -> None:
        known = self._kept.pop(key, None)
        self._bytes -= known[2] if known else 0


class Pieces(Kept):
    """The latest pieces by what they are and what they were made from, so that a change costs what it changes."""

    def __init__(self) -> None:
        super().__init__(_MOST)

    def of(self, key: tuple[str, ...], made_from: tuple[object, ...], make: Callable[..., T]) -> T:
        """Return a piece; it is made, by a call of `make` with `made_from`, if it wasn't from equal things before."""
        known: T | None = self.get(key, made_from)
        if known is not None:
            return known
        made = make(*made_from)
        return self.put(key, made_from, made, _size(made))

    def groups(
        self, kind: tuple[str, ...], items: Sequence[tuple[Any, ...]], make: Callable[..., str], glue: str = ""
    ) -> list[Piece]:
        """Return what `make` makes of each item, in groups; an item is a run and what else its text is made from."""

        def made(*group: tuple[Any, ...]) -> Piece:
            return piece(glue.join([self.of((*kind, item[0].id), item, make) for item in group]))

        found = [self.of((*kind, group[0][0].id, group[-1][0].id), group, made) for group in _grouped(items)]
        if not glue:
            return found
        between = piece(glue)
        return [one for group in found for one in (between, group)][1:]


def _size(made: str | Piece | tuple[Piece, ...]) -> int:
    """Return about how many bytes something takes."""
    if isinstance(made, str):
        return len(made)
    return sum(len(one.plain) + len(one.deflated) for one in (made if isinstance(made, tuple) else [made]))


def _grouped(items: Sequence[tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], ...]]:
    """Cut a list by the ids of its runs, so that one that comes or goes changes no group but its own."""
    first = 0
    for number, item in enumerate(items, 1):
        if item[0].id.endswith(_LAST_OF_GROUP) or number == len(items):
            yield tuple(items[first:number])
            first = number
