"""From an uploaded file to something that can be opened: sniffed by content, unpacked within limits.

Nothing in an archive decides where its files go: members are checked, then written under their bare
names into one folder. Sizes that an archive states are never believed, only bytes seen.
"""

from __future__ import annotations

import lzma
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Final, TypeVar

from bubblefinder.errors import NotATraceError
from bubblefinder.units import printable
from bubblefinder.web.limits import RefusedError, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Member = TypeVar("_Member")

TRACE: Final = "the-uploaded-trace"
"""What `unpack` calls the trace, so that a message about it can be told from others."""
HEAD_BYTES: Final = 512
_CHUNK: Final = 1 << 20
_LAYERS: Final = 3
_TABLES: Final = (".parquet", ".arrow", ".arrows")
_TAR_MAGIC: Final = slice(257, 262)
_PACKED: Final = {"gzip", "zstd", "xz"}
_MAGICS: Final = (
    (b"SQLite format 3\0", "sqlite"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"PAR1", "table"),
    (b"ARROW1", "table"),
    (b"\xff\xff\xff\xff", "table"),
)
_REPORT_SUFFIXES: Final = (".nsys-rep", ".qdrep")
_WINDOWS_DRIVE: Final = re.compile(r"[A-Za-z]:")
_DAMAGED_ZIP: Final = (
    zipfile.BadZipFile, NotImplementedError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError,
)  # fmt: skip


@dataclass(slots=True)
class Bounds:
    """Most bytes to unpack, over all layers together, and most files in an archive."""

    unpacked_bytes: int
    archive_files: int

    def spend(self, written: int) -> None:
        """Take what was written off what may still be."""
        self.unpacked_bytes -= written


def kind_of(head: bytes, name: str) -> str:
    """Return what a file is by its first bytes: sqlite, gzip, zstd, xz, zip, tar, table, report or unknown.

    Only a report of Nsight Systems, whose format is private, is known by its name.
    """
    if head[_TAR_MAGIC] == b"ustar":
        return "tar"
    for magic, kind in _MAGICS:
        if head.startswith(magic):
            return kind
    return "report" if name.lower().endswith(_REPORT_SUFFIXES) and head else "unknown"


def check_kind(kind: str, size_bytes: int) -> None:
    """Refuse a file that can't be a trace.

    Raises:
        RefusedError: nothing bubblefinder reads looks like this.
    """
    if not size_bytes:
        raise RefusedError(400, "The file is empty.", hint="Export the trace again and upload that.")
    if kind == "table":
        raise RefusedError(
            415, "This is one table of an export.", hint="Pack the whole folder as .zip or .tar and upload that."
        )
    if kind == "unknown":
        raise RefusedError(
            415,
            "This is not a trace: neither a SQLite export, nor a packed one, nor an archive of an export folder.",
            hint="Make one with: nsys export --type sqlite REPORT.nsys-rep",
        )


def unpack(upload: Path, name: str, scratch: Path, bounds: Bounds) -> Path:
    """Return the path of the trace inside an upload: a SQLite file, a report, or a folder of tables.

    Raises:
        RefusedError: a limit was met, or an archive holds what it must not.
        InputError: there is no trace in it, it is damaged, or unpacks to more than is allowed.
    """
    path = _place(scratch, 0)
    path.hardlink_to(upload)
    shown = name
    for layer in range(1, _LAYERS + 2):
        kind = kind_of(_head(path), shown)
        target = _place(scratch, layer)
        if kind in _PACKED:
            _decompress(path, target, bounds)
            path.unlink()
            path, shown = target, shown.rsplit(".", 1)[0]
        elif kind in {"zip", "tar"}:
            target.mkdir(mode=0o700)
            (_unzip if kind == "zip" else _untar)(path, target, bounds)
            path.unlink()
            single = next(target.glob("single*"), None)
            if single is None:
                return target
            path, shown = single.rename(_place(scratch, f"{layer}-single")), single.name
        else:
            check_kind(kind, path.stat().st_size)
            return path.rename(path.with_suffix(".nsys-rep")) if kind == "report" else path
    raise RefusedError(415, f"The file is packed more than {_LAYERS} times over.", hint="Upload the trace itself.")


def _place(scratch: Path, layer: int | str) -> Path:
    folder = scratch / str(layer)
    folder.mkdir(mode=0o700, parents=True)
    return folder / TRACE


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _decompress(path: Path, target: Path, bounds: Bounds) -> None:
    from bubblefinder.trace.unpack import unpacked

    with unpacked(path, bounds.unpacked_bytes) as content:
        if content is not None:
            shutil.move(content, target)
            bounds.spend(target.stat().st_size)


def _copy(source: IO[bytes], target: Path, limit: int) -> int:
    """Write what can be read from `source`, and stop at the limit; return the bytes written."""
    written = 0
    with target.open("xb") as file:
        while chunk := source.read(_CHUNK):
            written += len(chunk)
            if written > limit:
                raise RefusedError(
                    413,
                    f"It unpacks to more than the {size(limit)} that the server has room for.",
                    hint="Capture a shorter window, or delete old runs.",
                )
            file.write(chunk)
    return written


def _unzip(path: Path, folder: Path, bounds: Bounds) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_count(len(members), bounds)
            for member in members:
                kind = stat.S_IFMT(member.external_attr >> 16)
                _check_member(member.filename, is_plain=kind in {0, stat.S_IFREG, stat.S_IFDIR})
                if member.flag_bits & 1:
                    raise RefusedError(415, "The archive is encrypted.", hint="Pack it without a password.")
            files = [(member.filename, member) for member in members if not member.is_dir()]
            _extract(files, archive.open, folder, bounds)
    except _DAMAGED_ZIP as error:
        raise _damaged("zip") from error


def _untar(path: Path, folder: Path, bounds: Bounds) -> None:
    try:
        with tarfile.open(path, "r:") as archive:
            files = []
            for number, member in enumerate(archive, 1):
                _check_count(number, bounds)
                _check_member(member.name, is_plain=member.isfile() or member.isdir())
                if member.isfile():
                    files.append((member.name, member))
            _extract(files, lambda member: _present(archive.extractfile(member)), folder, bounds)
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise _damaged("tar") from error


def _present(file: IO[bytes] | None) -> IO[bytes]:
    if file is None:
        raise tarfile.ReadError
    return file


def _check_count(number: int, bounds: Bounds) -> None:
    if number > bounds.archive_files:
        raise RefusedError(
            413,
            f"The archive holds more than {bounds.archive_files:,} files.",
            hint="Pack one export folder and no more.",
        )


def _check_member(name: str, *, is_plain: bool) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or _WINDOWS_DRIVE.match(name) or "\0" in name:
        raise _unsafe(name, "points outside the archive")
    if not is_plain:
        raise _unsafe(name, "is a link or a device")


def _extract(
    files: list[tuple[str, _Member]], opened: Callable[[_Member], IO[bytes]], folder: Path, bounds: Bounds
) -> None:
    """Write the members that may be part of an export; the others are never unpacked."""
    for target, member in _wanted(files, folder):
        with opened(member) as source:
            bounds.spend(_copy(source, target, bounds.unpacked_bytes))


def _wanted(files: list[tuple[str, _Member]], folder: Path) -> Iterator[tuple[Path, _Member]]:
    tables = [(PurePosixPath(name).name, member) for name, member in files if name.endswith(_TABLES)]
    if not tables:
        if len(files) != 1:
            raise NotATraceError(
                f"The archive holds {len(files)} files and no export folder.",
                hint="Pack one SQLite export, or one folder of .parquet or .arrow files.",
            )
        name, member = files[0]
        yield folder / ("single.nsys-rep" if name.lower().endswith(_REPORT_SUFFIXES) else "single"), member
        return
    if len({name for name, _ in tables}) < len(tables):
        raise NotATraceError("The archive holds more than one export folder.", hint="Upload them one by one.")
    for name, member in tables:
        if printable(name, 150) != name:
            raise _unsafe(name, "has a name that no table has")
        yield folder / name, member


def _damaged(kind: str) -> NotATraceError:
    return NotATraceError(f"The {kind} file is damaged or cut short.", hint="Pack it again and upload that.")


def _unsafe(name: str, problem: str) -> RefusedError:
    return RefusedError(
        415, f"The archive is refused: {printable(name, 80)!r} {problem}.", hint="Pack plain files with relative names."
    )
