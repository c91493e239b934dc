"""Captures made to do harm, one by one, on a server with the real worker: each ends in a report or a plain word."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.trace.drawn import draw
from tests import web
from tests.exports import export
from tests.web import Server, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STEPS = 6
PICTURE = f"""
api      | {"GG...C.........." * STEPS}
gpu0 s7  | {"..aaabb........." * STEPS}
gpu0 s14 | {"........C......." * STEPS}
G = graph 5 a b
C = copy DtoH 8 pageable via cudaMemcpy
"""
SECONDS = 60
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
FOREVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS end FROM n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("data"), real=True, job_bytes=1 << 30, job_s=SECONDS) as one:
        yield one


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return export(draw(PICTURE), tmp_path / "x.sqlite")


def verdict_on(running: Server, path: Path) -> dict[str, Any]:
    """Upload a capture; return how it ended, and see that the server took no harm."""
    begun = time.monotonic()
    query = {"name": path.name}
    answer = web.put(f"{running.url}/api/runs", params=query, content=path.read_bytes(), timeout=60)
    assert answer.status_code == 202, answer.text
    said = running.settled(answer.json()["id"], seconds=SECONDS + 10)
    assert time.monotonic() - begun < SECONDS, "only the time limit ended it"
    assert running.peak_bytes() < 120 << 20
    assert running.process.poll() is None
    if said["state"] == "failed":
        assert said["hint"]
        assert "internal error" not in said["error"], said
    return said


def changed(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)
    return path


def test_the_capture_itself_is_fine(running: Server, capture: Path) -> None:
    assert verdict_on(running, capture)["state"] == "done"


def test_a_view_in_the_place_of_a_table_is_never_read(running: Server, capture: Path) -> None:
    path = changed(capture, f"ALTER TABLE {KERNELS} RENAME TO hidden", f"CREATE VIEW {KERNELS} AS SELECT * FROM hidden")
    said = verdict_on(running, path)
    whole = verdict_on(running, export(draw(PICTURE), capture.with_name("whole.sqlite")))
    assert said["verdict"] != whole["verdict"]


@pytest.mark.parametrize("table", [KERNELS, "StringIds", "NVTX_EVENTS", "ANALYSIS_DETAILS", "TARGET_INFO_GPU"])
def test_a_recursive_view_costs_no_time(running: Server, capture: Path, table: str) -> None:
    verdict_on(running, changed(capture, f"DROP TABLE IF EXISTS {table}", f"CREATE VIEW {table} AS {FOREVER}"))


def test_triggers_are_never_run(running: Server, capture: Path) -> None:
    events = ("INSERT", "UPDATE", "DELETE")
    triggers = [f"CREATE TRIGGER t{e} AFTER {e} ON {KERNELS} BEGIN SELECT RAISE(ABORT, 'ran'); END" for e in events]
    assert verdict_on(running, changed(capture, *triggers))["state"] == "done"


def test_a_huge_text_is_cut_or_refused(running: Server, capture: Path) -> None:
    path = changed(
        capture, "UPDATE StringIds SET value = hex(zeroblob(40000000)) WHERE id = (SELECT max(id) FROM StringIds)"
    )
    said = verdict_on(running, path)
    assert said["state"] in {"done", "failed"}
    page = web.get(f"{running.url}{said['url']}", timeout=60)
    assert len(page.content) < 2_000_000


def test_a_huge_blob_in_a_number_column_is_counted_out(running: Server, capture: Path) -> None:
    path = changed(capture, f"UPDATE {KERNELS} SET end = zeroblob(80000000) WHERE rowid = 3")
    said = verdict_on(running, path)
    assert said["state"] in {"done", "failed"}


def test_a_generated_column_is_not_computed(running: Server, capture: Path) -> None:
    bomb = "hex(zeroblob(400000000))"
    path = changed(
        capture,
        "ALTER TABLE StringIds RENAME TO old",
        f"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT AS ({bomb}) VIRTUAL)",
        "INSERT INTO StringIds (id) SELECT id FROM old",
    )
    verdict_on(running, path)


def test_a_virtual_table_is_not_opened(running: Server, capture: Path) -> None:
    path = changed(capture, f"DROP TABLE {KERNELS}", f"CREATE VIRTUAL TABLE {KERNELS} USING fts5(start, end)")
    verdict_on(running, path)


def test_a_schema_that_was_tampered_with_is_a_damaged_file(running: Server, capture: Path) -> None:
    with closing(sqlite3.connect(capture, isolation_level=None)) as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_master SET rootpage = 999999 WHERE name = ?", (KERNELS,))
        database.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE x(' WHERE name = 'StringIds'")
    assert verdict_on(running, capture)["state"] == "failed"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_file_with_noise_in_it_ends_well(running: Server, capture: Path, share: float) -> None:
    content = bytearray(capture.read_bytes())
    for place in range(int(len(content) * share), len(content), 37):
        content[place] = (place * 31) % 256
    capture.write_bytes(content)
    verdict_on(running, capture)


def test_times_at_the_ends_of_the_number_line_end_well(running: Server, capture: Path) -> None:
    most = (1 << 63) - 1
    path = changed(
        capture,
        f"UPDATE {KERNELS} SET start = -{most}, end = {most} WHERE rowid = 2",
        f"UPDATE {KERNELS} SET start = {most}, end = -{most} WHERE rowid = 4",
    )
    said = verdict_on(running, path)
    if said["state"] == "done":
        assert web.get(f"{running.url}/api/runs/{said['id']}/window", timeout=60).status_code == 200


def test_what_the_environment_held_is_neither_stored_nor_shown(running: Server, capture: Path) -> None:
    secret = "HF_TOKEN=hf_verysecret"  # noqa: S105 - made up
    with closing(sqlite3.connect(capture)) as database, database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS TARGET_INFO_SYSTEM_ENV (globalVid, devStateName, name, nameEnum, value)"
        )
        database.execute(
            "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1, 'Local', 'EnvironmentVariables', 7, ?)", (secret,)
        )
    said = verdict_on(running, capture)
    assert said["state"] == "done"
    for address in ("report.json", "report.html", "report.md", "window"):
        assert secret not in web.get(f"{running.url}/api/runs/{said['id']}/{address}", timeout=60).text
    root = running.root
    assert all(secret.encode() not in file.read_bytes() for file in root.rglob("*") if file.is_file())
