from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import UsageError
from bubblefinder.web.folder import DataFolder

if TYPE_CHECKING:
    from pathlib import Path


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
