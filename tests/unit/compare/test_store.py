"""The history file: who may write when, and which files it is."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.history import normal_reports, runs
from bubblefinder.compare.store import MIGRATIONS, compressed, expanded, open_store
from bubblefinder.errors import InputError, UsageError
from tests.unit.compare.builders import a_report

if TYPE_CHECKING:
    from pathlib import Path

WRITER = """
import sys
from pathlib import Path
from bubblefinder.compare.history import add
from bubblefinder.compare.store import open_store
from tests.unit.compare.builders import a_report
for number in range(5):
    with open_store(Path(sys.argv[1]), create=True) as database:
        add(database, a_report(sys.argv[2] + str(number)))
"""


def test_a_new_file_has_the_newest_version(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with open_store(path, create=True) as database:
        assert set(database.table_names()) == {"runs", "measures"}
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    connection.close()


def test_an_error_undoes_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with suppress(ZeroDivisionError), open_store(path, create=True) as database:
        database.execute("CREATE TABLE extra (x)")
        raise ZeroDivisionError
    with open_store(path, create=True) as database:
        assert "extra" not in database.table_names()


def test_reading_waits_for_nobody_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with open_store(path, create=True):
        pass
    before = path.read_bytes()
    with open_store(path) as one, open_store(path) as other:
        assert one.table("runs").count == other.table("runs").count == 0
    assert path.read_bytes() == before


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with open_store(path, create=True):
        pass
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(UsageError, match="history of version 99"), open_store(path):
        pass


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    trace, text = tmp_path / "trace.sqlite", tmp_path / "notes.txt"
    with sqlite3.connect(trace) as connection:
        connection.execute("CREATE TABLE StringIds (id)")
    connection.close()
    empty = tmp_path / "empty"
    empty.touch()
    text.write_text("not a database, and long enough to be read as one" * 40)
    refused = {trace: "no history", text: "can't be used", empty: "is empty", tmp_path / "none": "no history file"}
    for path, said in refused.items():
        before = path.read_bytes() if path.exists() else None
        with pytest.raises(InputError, match=said) as error, open_store(path):
            pass
        assert path.name in str(error.value)
        assert (path.read_bytes() if path.exists() else None) == before


def test_a_history_is_a_file_in_a_folder_that_is_there(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "is a folder"), (tmp_path / "gone" / "history.sqlite", "there is no folder")):
        with pytest.raises(InputError, match=said), open_store(path, create=True):
            pass


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "history.sqlite"
    commands = [[sys.executable, "-c", WRITER, str(path), name] for name in ("a", "b", "c")]
    writers = [subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True) for command in commands]
    assert [(w.communicate(timeout=120)[1], w.returncode) for w in writers] == [("", 0)] * 3
    with open_store(path) as database:
        assert database.table("runs").count == 15
        assert database.execute("SELECT count(DISTINCT run) FROM measures").fetchone() == (15,)


def test_a_file_of_the_first_version_is_taken_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old.sqlite"
    with monkeypatch.context() as older:
        older.setattr("bubblefinder.compare.store.MIGRATIONS", MIGRATIONS[:1])
        with open_store(path, create=True) as database:
            row = {"digest": "d", "added_at": "2026-11-01T00:00:00+00:00", "label": "", "state": "ok"}
            database.table("runs").insert(row | {"capture_mode": "node", "gpus": "[]", "steps": 9, "waiting": 0.0})
    with open_store(path) as database:
        (old,) = runs(database)
        assert old.facts["definitions"] == "1"
        assert normal_reports(database, a_report()) == []


def test_a_file_of_the_first_version_is_read_where_it_can_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.sqlite"
    with monkeypatch.context() as older:
        older.setattr("bubblefinder.compare.store.MIGRATIONS", MIGRATIONS[:1])
        with open_store(path, create=True):
            pass
    before = path.read_bytes()
    with open_store(path) as database:
        assert runs(database) == []
    assert path.read_bytes() == before
    with open_store(path, write=True):
        pass
    assert path.read_bytes() != before


def test_what_is_packed_comes_back_and_damage_is_told() -> None:
    assert expanded(compressed(b"a report")) == b"a report"
    with pytest.raises(InputError, match="damaged"):
        expanded(b"no report")
