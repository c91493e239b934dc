from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import InputError
from bubblefinder.fleet.find import export_beside, find_captures, several

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("a.sqlite", "sub/b.sqlite.xz", "sub/c.nsys-rep", "sub/d.nsys-rep", "sub/d.sqlite", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (tmp_path / "e_pqtdir").mkdir()
    (tmp_path / "e_pqtdir" / "StringIds.parquet").write_text("")
    return tmp_path


def names(place: Path, *patterns: str) -> list[str]:
    return [str(path.relative_to(place)) for path in find_captures(patterns)]


def test_a_folder_holds_its_exports_at_every_level_and_reports_without_one(place: Path) -> None:
    assert names(place, str(place)) == ["a.sqlite", "e_pqtdir", "sub/b.sqlite.xz", "sub/c.nsys-rep", "sub/d.sqlite"]


def test_patterns_and_files_are_taken_once(place: Path) -> None:
    assert names(place, f"{place}/sub/*.sqlite", str(place / "sub" / "d.sqlite"), f"{place}/*.sqlite") == [
        "a.sqlite", "sub/d.sqlite",
    ]  # fmt: skip


def test_a_place_without_captures_is_refused(place: Path) -> None:
    with pytest.raises(InputError, match="holds no capture"):
        find_captures([f"{place}/*.json"])


def test_an_export_older_than_its_report_is_not_taken(place: Path) -> None:
    report = place / "sub" / "d.nsys-rep"
    assert export_beside(report) == place / "sub" / "d.sqlite"
    os.utime(place / "sub" / "d.sqlite", (0, 0))
    assert export_beside(report) is None
    assert "sub/d.nsys-rep" in names(place, str(place))


def test_a_folder_with_the_tables_of_an_export_is_one_capture_whatever_its_name(place: Path) -> None:
    (place / "sub" / "plain").mkdir()
    (place / "sub" / "plain" / "StringIds.arrow").write_text("")
    assert "sub/plain" in names(place, str(place))
    assert several([place / "sub" / "plain"]) == []


def test_several_are_what_is_more_than_one_place_a_folder_or_a_pattern(place: Path) -> None:
    assert several([place / "a.sqlite"]) == several([place / "missing.sqlite"]) == several([place / "e_pqtdir"]) == []
    assert several([place / "sub"]) == find_captures([str(place / "sub")])
    assert several([place / "*.sqlite"]) == [place / "a.sqlite"]
    assert len(several([place / "a.sqlite", place / "e_pqtdir"])) == 2


def test_a_pipe_is_refused_like_any_file_that_is_none(place: Path) -> None:
    os.mkfifo(place / "pipe")
    assert several([place / "pipe"]) == []
