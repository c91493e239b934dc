from __future__ import annotations

import gzip
import io
import lzma
import tarfile
from typing import TYPE_CHECKING

import pytest
from backports import zstd

from bubblefinder.errors import InputError, NotATraceError
from bubblefinder.trace.open import open_trace
from tests.unit.trace.rows import bad, differences, save

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstd.compress], ids=["gzip", "xz", "zstd"])
def test_packed_files_are_read(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    plain = save(tmp_path / "x.sqlite")
    packed = tmp_path / "x.packed"
    packed.write_bytes(pack(plain.read_bytes()))
    assert differences(open_trace(plain), open_trace(packed)) == []


def test_a_packed_folder_is_read(sample: Callable[[str], Path], tmp_path: Path) -> None:
    folder = sample("dspark_before.node_pqtdir")
    packed = tmp_path / "x.tar.xz"
    with tarfile.open(packed, "w:xz") as archive:
        archive.add(folder, "somewhere/x_pqtdir")
    assert differences(open_trace(folder), open_trace(packed)) == []


def test_a_file_packed_over_and_over_is_refused(tmp_path: Path) -> None:
    content = save(tmp_path / "x.sqlite").read_bytes()
    for _ in range(3):
        content = gzip.compress(content)
    with pytest.raises(NotATraceError, match="too many times"):
        open_trace(bad(tmp_path, "x.gz", content))


def test_a_packed_file_may_not_grow_past_the_limit(tmp_path: Path) -> None:
    packed = bad(tmp_path, "x.xz", lzma.compress(bytes(5_000_000)))
    with pytest.raises(InputError, match="more than 1,000,000 bytes"):
        open_trace(packed, unpack_limit=1_000_000)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for number in range(3):
            member = tarfile.TarInfo(f"{number}.parquet")
            member.size = 400_000
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    with pytest.raises(InputError, match="unpacks to more"):
        open_trace(bad(tmp_path, "x.tar", archive.getvalue()), unpack_limit=1_000_000)
