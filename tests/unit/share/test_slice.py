"""A slice is an export of its own: whole or not at all, and loading it gives what was cut."""

from __future__ import annotations

import lzma
import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import CannotAnswerError, InternalError, UsageError
from bubblefinder.share import slice as slicing
from bubblefinder.share.slice import write_slice
from bubblefinder.trace.open import open_trace
from tests.exports import GENERATIONS, export
from tests.judged import cut
from tests.loops import SPECULATIVE, Loop

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.trace.model import Trace

CUT = partial(cut, steps=(2, 4))


def whole() -> Trace:
    loop = Loop()
    for _ in range(8):
        loop.step(SPECULATIVE)
    return loop.sketch.trace()


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return export(whole(), tmp_path / "whole.sqlite")


@pytest.mark.parametrize("scrub", [False, True])
@pytest.mark.parametrize("schema", GENERATIONS)
def test_every_generation_can_be_sliced(schema: str, scrub: bool, tmp_path: Path) -> None:
    source = export(whole(), tmp_path / "whole.sqlite", schema=schema)
    part = write_slice(source, tmp_path / "part.sqlite", CUT, scrub=scrub)
    again = open_trace(tmp_path / "part.sqlite")
    assert again.operations.drop("row").equals(part.operations.drop("row"))
    assert again.part is not None
    assert again.part.steps["index"].to_list() == list(range(8))
    assert (tmp_path / "part.sqlite").stat().st_size < source.stat().st_size


def test_only_strings_that_are_used_are_kept(capture: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(capture)) as db, db:
        db.execute("INSERT INTO StringIds VALUES (999, 'HF_TOKEN=hunter2')")
    write_slice(capture, tmp_path / "part.sqlite", CUT)
    with closing(sqlite3.connect(tmp_path / "part.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM StringIds WHERE id = 999").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM StringIds").fetchone() != (0,)


def test_tables_that_nobody_knows_stay_behind(capture: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(capture)) as db, db:
        db.execute("CREATE TABLE NOTES (value TEXT)")
        db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN note TEXT")
    for scrub, columns in ((False, {"note"}), (True, set())):
        write_slice(capture, tmp_path / "part.sqlite", CUT, scrub=scrub, force=True)
        with closing(sqlite3.connect(tmp_path / "part.sqlite")) as db:
            assert not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'NOTES'").fetchone()
            found = {row[1] for row in db.execute("PRAGMA table_info(CUPTI_ACTIVITY_KIND_KERNEL)")}
            assert found & {"note"} == columns


def test_a_packed_slice_is_the_same_file_packed(capture: Path, tmp_path: Path) -> None:
    for name in ("part.sqlite", "part.sqlite.xz"):
        write_slice(capture, tmp_path / name, CUT)
    assert lzma.decompress((tmp_path / "part.sqlite.xz").read_bytes()) == (tmp_path / "part.sqlite").read_bytes()


@pytest.mark.parametrize(
    ("name", "said"),
    [("part.db", "no name for a slice"), ("nowhere/part.sqlite", "no folder"), ("whole.sqlite", "exists")],
)
def test_a_target_that_will_not_do_is_refused(name: str, said: str, capture: Path, tmp_path: Path) -> None:
    before = capture.read_bytes()
    with pytest.raises(UsageError, match=said):
        write_slice(capture, tmp_path / name, CUT)
    assert capture.read_bytes() == before


def test_a_slice_may_replace_its_own_capture_when_told(capture: Path) -> None:
    write_slice(capture, capture, CUT, force=True)
    assert open_trace(capture).part is not None


def test_nothing_is_left_behind_when_it_fails(capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CannotAnswerError):
        write_slice(capture, tmp_path / "part.sqlite", partial(cut, steps=(50, 60)))
    monkeypatch.setattr(slicing, "open_trace", lambda _: whole())
    with pytest.raises(InternalError, match="differs from the capture"):
        write_slice(capture, tmp_path / "part.sqlite", CUT)
    assert [path.name for path in tmp_path.iterdir()] == ["whole.sqlite"]
