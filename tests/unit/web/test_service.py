from __future__ import annotations

import asyncio
import sqlite3
import time
from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import UsageError
from bubblefinder.web import service as service_module
from bubblefinder.web import supervise
from bubblefinder.web.limits import Limits
from bubblefinder.web.service import Service
from bubblefinder.web.shelf import StoredRun
from tests.web import asynchronous, site, trace

if TYPE_CHECKING:
    from pathlib import Path


@asynchronous
async def test_deleting_removes_every_byte_of_a_run(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put(trace(), name="SECRET-NAME.sqlite", label="SECRET-LABEL")
        await here.settled(run_id)
        kept = await here.put(name="kept.sqlite")
        await here.settled(kept)
        assert any(b"SECRET" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert (await here.client.delete(f"/api/runs/{run_id}")).status_code == 204
        left = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert all(b"SECRET" not in path.read_bytes() for path in left)
        for suffix in ("", "/report.json", "/report.html", "/window"):
            assert (await here.client.get(f"/api/runs/{run_id}{suffix}")).status_code == 404
        assert (await here.client.get(f"/runs/{run_id}")).status_code == 404
        assert (await here.client.get(f"/api/runs/{kept}")).json()["state"] == "done"


@asynchronous
async def test_runs_that_are_too_old_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "_TIDY_S", 0.05)
    async with site(tmp_path, Limits(keep_s=60)) as here:
        young = await here.put()
        await here.settled(young)
        here.service.store.add(StoredRun(id="old", name="old", state="done", created_s=time.time() - 61))
        here.service.folder.report("old").mkdir(parents=True)
        while here.service.store.get("old"):
            await asyncio.sleep(0.02)
        assert not here.service.folder.run("old").exists()
        assert here.service.store.ids() == {young}


@asynchronous
async def test_two_servers_never_share_a_folder(tmp_path: Path) -> None:
    async with site(tmp_path):
        with pytest.raises(UsageError, match="another bubblefinder server"):
            Service(tmp_path, Limits())
    async with site(tmp_path) as here:
        assert (await here.settled(await here.put()))["state"] == "done"


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="can't be used") as refused:
        Service(tmp_path / "file" / "data", Limits())
    assert "--data" in refused.value.hint


@asynchronous
async def test_the_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    async with site(tmp_path / "data") as here:
        await here.settled(await here.put())
        for path in (tmp_path / "data").rglob("*"):
            if path.is_dir():
                assert path.stat().st_mode & 0o077 == 0 or path.parent.stat().st_mode & 0o077 == 0


def leftovers(root: Path, kind: str) -> None:
    """Leave what a kill, a full disk or a careless hand leaves."""
    (root / "incoming").mkdir(parents=True)
    (root / "runs").mkdir()
    match kind:
        case "comparison":
            (root / "incoming" / "tmp1").mkdir()
            (root / "incoming" / "tmp1" / "diff.json").write_text("{")
        case "file for a run":
            (root / "runs" / "x").write_text("")
        case "empty database":
            (root / "runs.db").write_text("")
        case "journal":
            (root / "runs.db-journal").write_bytes(b"\0" * 512)


@pytest.mark.parametrize("kind", ["comparison", "file for a run", "empty database", "journal"])
@asynchronous
async def test_nothing_that_is_left_behind_keeps_a_server_from_starting(tmp_path: Path, kind: str) -> None:
    leftovers(tmp_path, kind)
    async with site(tmp_path) as here:
        assert (await here.settled(await here.put()))["state"] == "done"


@pytest.mark.parametrize("content", [b"garbage" * 1000, b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_damaged_database_is_said_and_nothing_is_swept(tmp_path: Path, content: bytes) -> None:
    report = tmp_path / "runs" / "a" / "report"
    report.mkdir(parents=True)
    (tmp_path / "runs.db").write_bytes(content)
    with pytest.raises(UsageError, match=r"runs\.db is damaged") as refused:
        Service(tmp_path, Limits())
    assert refused.value.hint
    assert report.exists()
    assert (tmp_path / "runs.db").read_bytes() == content


@asynchronous
async def test_a_database_of_an_earlier_version_gets_the_columns_it_lacks(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put()
        await here.settled(run_id)
        here.service.store._runs.transform(drop={"hint", "at_least"})
    async with site(tmp_path) as here:
        assert (await here.client.get(f"/api/runs/{run_id}")).json()["state"] == "done"


@asynchronous
async def test_a_full_disk_does_not_keep_anybody_from_deleting(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put()
        await here.settled(run_id)
        database = here.service.store._database
        pages = next(iter(database.query("PRAGMA page_count")))["page_count"]
        real, released = here.service.folder.release_reserve, []

        def release() -> bool:
            released.append(real())
            database.execute("PRAGMA max_page_count = 1000000")
            return bool(released[0])

        here.service.store._relief = release
        database.execute(f"PRAGMA max_page_count = {pages}")
        here.service.store.edit(run_id, label="x" * 200, note="y" * 100_000)
        assert released == [True]
        assert (await here.client.delete(f"/api/runs/{run_id}")).status_code == 204
        assert here.service.store.ids() == set()


@asynchronous
async def test_tidying_goes_on_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(service_module, "_TIDY_S", 0.05)
    monkeypatch.setattr(supervise, "PAUSES_S", (0.01,))
    async with site(tmp_path, Limits(keep_s=60)) as here:
        real, calls = here.service.store.delete, [0]

        def fails_first(run_id: str) -> None:
            calls[0] += 1
            if calls[0] < 3:
                raise sqlite3.OperationalError("database or disk is full")
            real(run_id)

        monkeypatch.setattr(here.service.store, "delete", fails_first)
        here.service.store.add(StoredRun(id="old", name="old", state="done", created_s=time.time() - 61))
        while here.service.store.get("old"):
            await asyncio.sleep(0.02)
    assert "full" in caplog.text


@asynchronous
async def test_a_run_that_is_kept_outlives_its_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "_TIDY_S", 0.02)
    async with site(tmp_path, Limits(keep_s=60)) as here:
        for name, kept in (("old", False), ("baseline", True)):
            here.service.store.add(StoredRun(id=name, name=name, state="done", created_s=time.time() - 61, kept=kept))
        while here.service.store.get("old"):
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        assert here.service.store.ids() == {"baseline"}


@asynchronous
async def test_a_clock_that_went_backwards_neither_deletes_nor_reorders(tmp_path: Path) -> None:
    async with site(tmp_path, Limits(keep_s=60, jobs=1)) as here:
        ahead = time.time() + 86_400
        here.service.store.add(StoredRun(id="tomorrow", name="a", state="done", created_s=ahead, label="x"))
        run_id = await here.put(label="x")
        assert (await here.settled(run_id))["state"] == "done"
        listed = (await here.client.get("/api/runs")).json()["runs"]
        assert [one["id"] for one in listed] == [run_id, "tomorrow"]
        assert here.service.store.shelf.before(here.service.run(run_id)).id == "tomorrow"  # type: ignore[union-attr]
