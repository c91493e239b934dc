from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import UsageError
from bubblefinder.web import service as service_module
from bubblefinder.web.limits import Limits
from bubblefinder.web.service import Service
from bubblefinder.web.store import StoredRun
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
