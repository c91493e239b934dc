from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from bubblefinder.errors import UsageError
from bubblefinder.web.folder import DataFolder


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path / "data")


def arrived(folder: DataFolder, run_id: str) -> None:
    part = folder.incoming / "part"
    part.write_bytes(b"trace")
    folder.adopt(run_id, part)


def test_everything_is_for_the_owner_alone(folder: DataFolder) -> None:
    arrived(folder, "a")
    for path in (folder.root, folder.incoming, folder.run("a")):
        assert path.stat().st_mode & 0o777 == 0o700


def test_a_published_report_replaces_an_earlier_one_whole(folder: DataFolder) -> None:
    arrived(folder, "a")
    for content in ("first", "second"):
        finished = folder.scratch("a") / "finished"
        finished.mkdir(parents=True)
        (finished / content).write_text(content)
        folder.publish("a", finished)
    assert [path.name for path in folder.report("a").iterdir()] == ["second"]
    assert folder.upload("a").exists()


def test_clearing_keeps_the_report(folder: DataFolder) -> None:
    arrived(folder, "a")
    folder.report("a").mkdir()
    folder.scratch("a").mkdir()
    folder.clear("a")
    assert [path.name for path in folder.run("a").iterdir()] == ["report"]
    folder.clear("never there")


def test_the_bytes_of_all_runs_are_counted(folder: DataFolder) -> None:
    arrived(folder, "a")
    arrived(folder, "b")
    assert folder.stored_bytes() == 10
    folder.delete("a")
    assert folder.stored_bytes() == 5


def test_a_lock_is_held_until_it_is_closed(folder: DataFolder) -> None:
    lock = folder.lock()
    with pytest.raises(UsageError):
        DataFolder(folder.root).lock()
    lock.close()
    DataFolder(folder.root).lock().close()


def test_whatever_a_killed_server_left_is_swept_and_keeps_no_server_from_starting(folder: DataFolder) -> None:
    (folder.incoming / "comparison").mkdir()
    (folder.incoming / "comparison" / "diff.json").write_text("half")
    (folder.incoming / "part").write_text("half")
    (folder.incoming / "link").symlink_to(folder.root / "runs.db")
    folder.run("no folder").write_text("a file where a folder belongs")
    arrived(folder, "unknown")
    arrived(folder, "waits")
    folder.sweep({"waits"}, {"waits"})
    assert list(folder.incoming.iterdir()) == []
    assert [path.name for path in (folder.root / "runs").iterdir()] == ["waits"]


def test_a_report_that_the_database_does_not_know_is_left_alone(folder: DataFolder) -> None:
    arrived(folder, "a")
    folder.report("a").mkdir()
    folder.sweep(set(), set())
    assert folder.report("a").exists()


def test_a_deletion_that_was_broken_off_is_ended_by_the_next_sweep(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived(folder, "a")
    folder.report("a").mkdir()
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    folder.delete("a")
    assert not folder.run("a").exists()
    monkeypatch.undo()
    folder.sweep(set(), set())
    assert list(folder.incoming.iterdir()) == []


@pytest.mark.parametrize("in_the_way", ["folder", "unreadable"])
def test_a_lock_that_cannot_be_opened_is_said(
    folder: DataFolder, in_the_way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_the_way == "folder":
        (folder.root / "lock").mkdir()
    else:
        monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(UsageError, match="lock") as refused:
        folder.lock()
    assert refused.value.hint


def denied(*_: object, **__: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


def test_counting_the_stored_bytes_looks_at_no_settled_run_again(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        arrived(folder, name)
    folder.clear("a")
    assert folder.stored_bytes() == 5
    looked: list[str] = []
    walk = os.walk

    def looks(path: Path) -> Any:
        looked.append(str(path))
        return walk(path)

    monkeypatch.setattr(os, "walk", looks)
    assert folder.stored_bytes() == 5
    assert not any(path.endswith("/a") for path in looked)


def test_room_kept_for_bookkeeping_can_be_given_back_once(folder: DataFolder) -> None:
    folder.keep_reserve()
    assert (folder.root / "reserve").stat().st_size >= 1 << 20
    assert folder.release_reserve()
    assert not folder.release_reserve()
    folder.keep_reserve()
    assert folder.release_reserve()
