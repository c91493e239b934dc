"""Unpacks xz, zstd, gzip and tar files to a temporary place, up to a limit."""

from __future__ import annotations

import gzip
import lzma
import sys
import tarfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from bubblefinder.ending import temporary_folder
from bubblefinder.errors import InputError, NotATraceError
from bubblefinder.trace.arrow import SUFFIXES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

UNPACK_LIMIT: Final = 32 << 30
_CHUNK: Final = 1 << 20
_PACKED_SUFFIXES: Final = {".xz", ".zst", ".zstd", ".gz", ".tar"}
_TAR_MAGIC: Final = slice(257, 262)


class _Readable(Protocol):
    """What unpacking needs of an opened file."""

    def read(self, size: int, /) -> bytes:
        """Read up to `size` bytes."""


_Opener: TypeAlias = "Callable[[Path], AbstractContextManager[_Readable]]"
_OPENERS: Final[dict[bytes, _Opener]] = {
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"\x1f\x8b": gzip.GzipFile,
    b"\x28\xb5\x2f\xfd": zstd.ZstdFile,
}


@contextmanager
def unpacked(path: Path, limit: int) -> Iterator[Path | None]:
    """Give the content of a packed file, or None for one that isn't packed; it is gone afterwards.

    Args:
        path: a file; its content decides whether and how it is packed.
        limit: bytes that the content may have.

    Raises:
        NotATraceError: the packed file is damaged or cut short.
        InputError: the content is larger than the limit.
    """
    with path.open("rb") as file:
        head = file.read(512)
    opener = next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)
    if opener is None and head[_TAR_MAGIC] != b"ustar":
        yield None
        return
    with temporary_folder() as place:
        content = place / (path.stem if path.suffix in _PACKED_SUFFIXES else path.name)
        try:
            _unpack(path, opener, content, limit)
        except (lzma.LZMAError, zstd.ZstdError, zlib.error, gzip.BadGzipFile, tarfile.TarError, EOFError) as error:
            raise NotATraceError(f"{path.name} is a damaged or cut archive: {error}", hint="copy it again") from error
        yield content


def _unpack(path: Path, opener: _Opener | None, content: Path, limit: int) -> None:
    """Write the content of a packed file, or the tables of a tar archive as a folder."""
    if opener:
        with opener(path) as packed:
            _copy(packed, content, limit, path.name)
        return
    content.mkdir()
    with tarfile.open(path) as archive:
        for member in archive:
            name = Path(member.name).name
            table = archive.extractfile(member) if member.isfile() and Path(name).suffix in SUFFIXES else None
            if table:
                limit -= _copy(table, content / name, limit, path.name)


def _copy(packed: _Readable, content: Path, limit: int, name: str) -> int:
    """Copy until the end and return the length.

    Raises:
        InputError: there is more than the limit.
    """
    length = 0
    with content.open("wb") as target:
        while chunk := packed.read(_CHUNK):
            length += len(chunk)
            if length > limit:
                raise InputError(
                    f"{name} unpacks to more than {limit:,} bytes", hint="unpack it yourself and give what is inside"
                )
            target.write(chunk)
    return length
