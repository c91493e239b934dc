from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from backports import zstd

from bubblefinder.errors import InputError
from bubblefinder.web.archive import TRACE, Bounds, check_kind, kind_of, unpack
from bubblefinder.web.limits import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATABASE = b"SQLite format 3\0" + bytes(100)
BOUNDS = Bounds(unpacked_bytes=1 << 20, archive_files=20)


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Path]:
    def unpack_bytes(content: bytes, name: str = "x", bounds: Bounds = BOUNDS) -> Path:
        upload = tmp_path / "upload"
        upload.write_bytes(content)
        return unpack(upload, name, tmp_path / "scratch", replace(bounds))

    return unpack_bytes


def zipped(members: dict[str, bytes], *, packed: bool = True) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(*members: tarfile.TarInfo, content: bytes = b"PAR1") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in members:
            if member.isreg():
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content) if member.isreg() else None)
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (DATABASE, "x.zip", "sqlite"),
        (gzip.compress(b"", mtime=0), "x.sqlite", "gzip"),
        (lzma.compress(b""), "x", "xz"),
        (zstd.compress(b""), "x", "zstd"),
        (zipped({"a": b""}), "x", "zip"),
        (tarred(member("a")), "x", "tar"),
        (b"PAR1...", "x", "table"),
        (b"anything", "a.NSYS-REP", "report"),
        (b"anything", "a.sqlite", "unknown"),
        (b"", "a.nsys-rep", "unknown"),
    ],
)
def test_a_file_is_what_its_first_bytes_say(head: bytes, name: str, kind: str) -> None:
    assert kind_of(head[:512], name) == kind


@pytest.mark.parametrize(
    ("kind", "size", "words"), [("sqlite", 0, "empty"), ("table", 9, "one table"), ("unknown", 9, "not a trace")]
)
def test_what_can_be_no_trace_is_refused_with_a_cure(kind: str, size: int, words: str) -> None:
    with pytest.raises(RefusedError, match=words) as refused:
        check_kind(kind, size)
    assert refused.value.hint


@pytest.mark.parametrize(
    "pack",
    [bytes, gzip.compress, lzma.compress, zstd.compress, lambda data: gzip.compress(lzma.compress(data), mtime=0)],
    ids=["plain", "gzip", "xz", "zstd", "both"],
)
def test_a_packed_database_is_unpacked(opened: Callable[..., Path], pack: Callable[[bytes], bytes]) -> None:
    path = opened(pack(DATABASE))
    assert path.read_bytes() == DATABASE
    assert path.name == TRACE


def test_an_archive_of_a_folder_becomes_that_folder(opened: Callable[..., Path]) -> None:
    path = opened(
        zipped(
            {
                "out_pqtdir/": b"",
                "out_pqtdir/KERNEL.parquet": b"PAR1",
                "out_pqtdir/StringIds.parquet": b"PAR1",
                "notes.txt": b"x",
            }
        )
    )
    assert sorted(file.name for file in path.iterdir()) == ["KERNEL.parquet", "StringIds.parquet"]


def test_a_packed_tar_of_a_folder_becomes_that_folder(opened: Callable[..., Path]) -> None:
    path = opened(zstd.compress(tarred(member("x_arwdir", tarfile.DIRTYPE), member("x_arwdir/KERNEL.arrow"))))
    assert [file.name for file in path.iterdir()] == ["KERNEL.arrow"]


def test_an_archive_of_one_database_is_that_database(opened: Callable[..., Path]) -> None:
    assert opened(zipped({"deep/down/a.sqlite": DATABASE})).read_bytes() == DATABASE


def test_a_report_in_an_archive_keeps_the_suffix_nsys_goes_by(opened: Callable[..., Path]) -> None:
    assert opened(zipped({"a.nsys-rep": b"private format"})).suffix == ".nsys-rep"


@pytest.mark.parametrize(
    "name",
    ["../KERNEL.parquet", "a/../../KERNEL.parquet", "/etc/KERNEL.parquet", "C:\\KERNEL.parquet", "..\\x.parquet"],
)
def test_names_that_point_outside_are_refused(opened: Callable[..., Path], tmp_path: Path, name: str) -> None:
    for content in (zipped({name: b"PAR1"}), tarred(member(name))):
        with pytest.raises(RefusedError, match="outside"):
            opened(content)
        _clean(tmp_path)
    assert not (tmp_path.parent / "KERNEL.parquet").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused(opened: Callable[..., Path], kind: bytes) -> None:
    with pytest.raises(RefusedError, match="link or a device"):
        opened(tarred(member("KERNEL.parquet", kind, "/etc/passwd")))


def test_links_in_a_zip_are_refused(opened: Callable[..., Path]) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("KERNEL.parquet")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(RefusedError, match="link or a device"):
        opened(buffer.getvalue())


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstd.compress], ids=["gzip", "xz", "zstd"])
def test_a_packed_bomb_stops_at_the_limit(
    opened: Callable[..., Path], tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(InputError, match="more than"):
        opened(pack(DATABASE + bytes(20 << 20)))
    assert _bytes_in(tmp_path / "scratch") < 4 << 20


def test_a_zip_bomb_stops_at_the_limit_whatever_its_headers_say(opened: Callable[..., Path], tmp_path: Path) -> None:
    bomb = bytearray(zipped({"KERNEL.parquet": bytes(20 << 20)}))
    central = bomb.index(b"PK\x01\x02")
    bomb[central + 24 : central + 28] = (100).to_bytes(4, "little")
    with pytest.raises(InputError):
        opened(bytes(bomb))
    _clean(tmp_path)
    with pytest.raises(RefusedError, match="more than"):
        opened(zipped({f"{number}.parquet": bytes(200 << 10) for number in range(10)}))
    assert _bytes_in(tmp_path / "scratch") < 4 << 20


def test_an_archive_of_too_many_files_is_refused(opened: Callable[..., Path]) -> None:
    names = [f"T{number}.parquet" for number in range(21)]
    with pytest.raises(RefusedError, match="more than 20 files"):
        opened(zipped(dict.fromkeys(names, b"PAR1")))


def test_an_archive_of_too_many_files_is_refused_as_tar_too(opened: Callable[..., Path]) -> None:
    with pytest.raises(RefusedError, match="more than 20 files"):
        opened(tarred(*[member(f"T{number}.parquet") for number in range(21)]))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (zipped({}), "holds 0 files"),
        (zipped({"a.txt": b"x", "b.txt": b"y"}), "holds 2 files"),
        (zipped({"a/K.parquet": b"x", "b/K.parquet": b"y"}), "more than one export folder"),
        (zipped({"a.txt": b"just text"}), "not a trace"),
        (zipped({"K.parquet": b"x" * 5000}, packed=False)[:3000], "damaged"),
        (gzip.compress(DATABASE, mtime=0)[:-9], "damaged|cut"),
        (lzma.compress(DATABASE)[:-9], "damaged|cut"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 50, "damaged|cut"),
    ],
)
def test_what_holds_no_trace_says_so(opened: Callable[..., Path], content: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        opened(content)
    assert refused.value.hint


def test_an_encrypted_zip_is_refused(opened: Callable[..., Path]) -> None:
    content = bytearray(zipped({"K.parquet": b"PAR1"}))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(RefusedError, match="encrypted"):
        opened(bytes(content))


def test_packing_without_end_is_refused(opened: Callable[..., Path]) -> None:
    content = DATABASE
    for _ in range(6):
        content = gzip.compress(content, mtime=0)
    with pytest.raises(RefusedError, match="times over"):
        opened(content)


def test_all_layers_share_one_limit(opened: Callable[..., Path], tmp_path: Path) -> None:
    content = tarred(member("a.sqlite"), content=DATABASE + bytes(600_000))
    with pytest.raises(InputError, match="more than"):
        opened(gzip.compress(content, mtime=0), bounds=Bounds(unpacked_bytes=1_000_000, archive_files=20))
    assert _bytes_in(tmp_path / "scratch") < 1_100_000


def test_a_layer_is_gone_once_it_is_unpacked(opened: Callable[..., Path], tmp_path: Path) -> None:
    path = opened(gzip.compress(tarred(member("a.sqlite"), content=DATABASE)))
    assert path.read_bytes() == DATABASE
    assert _bytes_in(tmp_path / "scratch") == len(DATABASE)


@pytest.mark.parametrize(
    "outer", [lambda inner: zipped({"in.tar": inner}), gzip.compress, lzma.compress], ids=["zip", "gzip", "xz"]
)
@pytest.mark.parametrize(
    "hostile",
    [
        member("a", tarfile.SYMTYPE, "/etc/passwd"),
        member("a", tarfile.LNKTYPE, "../../runs.db"),
        member("../a.sqlite"),
        member("/a.sqlite"),
    ],
    ids=lambda one: f"{one.name}:{one.linkname}",
)
def test_links_and_paths_are_refused_in_nested_archives_too(
    opened: Callable[..., Path], outer: Callable[[bytes], bytes], hostile: tarfile.TarInfo
) -> None:
    with pytest.raises(RefusedError, match="is refused"):
        opened(outer(tarred(member("b.sqlite"), hostile, content=DATABASE)))


def test_an_archive_that_holds_itself_a_hundred_times_ends(opened: Callable[..., Path]) -> None:
    content = DATABASE
    for layer in range(100):
        content = zipped({f"{layer}.zip": content})
    with pytest.raises(RefusedError, match="times over"):
        opened(content)


def _clean(tmp_path: Path) -> None:
    import shutil

    shutil.rmtree(tmp_path / "scratch", ignore_errors=True)
    (tmp_path / "upload").unlink(missing_ok=True)


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
