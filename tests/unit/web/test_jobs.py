from __future__ import annotations

import asyncio
import errno
import re
import shutil
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.web import supervise
from bubblefinder.web.folder import DataFolder
from bubblefinder.web.limits import Limits
from bubblefinder.web.shelf import StoredRun
from bubblefinder.web.store import Store
from tests.web import asynchronous, site, trace

if TYPE_CHECKING:
    from pathlib import Path

ONE_JOB = Limits(jobs=1)


@asynchronous
async def test_a_finished_job_leaves_its_reports_and_nothing_else(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put(name="a.sqlite", label="x")
        said = await here.settled(run_id)
        assert (said["state"], said["verdict"]) == ("done", "verdict on a.sqlite")
        assert said["progress"]["done"] == len(said["progress"]["stages"])
        assert [path.name for path in (tmp_path / "runs" / run_id).iterdir()] == ["report"]


@asynchronous
async def test_a_running_job_says_what_it_is_at(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put(trace("sleep 30"))
        said = (await here.client.get(f"/api/runs/{run_id}")).json()
        while said["progress"]["stage"] != "load":
            await asyncio.sleep(0.01)
            said = (await here.client.get(f"/api/runs/{run_id}")).json()
        assert 0 <= said["progress"]["stage_s"] <= said["progress"]["elapsed_s"] < 60
        assert said["progress"]["stages"][said["progress"]["done"]] == "load"


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ("fail the trace has a cold", "the trace has a cold"),
        ("crash", "broke off at the stage “load”.*memory"),
        ("garbage", "broke off at the stage “load”"),
        ("number", "broke off at the stage “load”"),
        ("broke", "more than the 1.0 GiB of memory"),
        ("eat 2000000000", "more than the 1.0 GiB of memory"),
    ],
    ids=lambda value: value.split()[0],
)
@asynchronous
async def test_a_job_that_ends_badly_says_why_and_leaves_no_file(tmp_path: Path, order: str, error: str) -> None:
    async with site(tmp_path, Limits(job_bytes=1 << 30)) as here:
        run_id = await here.put(trace(order))
        said = await here.settled(run_id)
        assert said["state"] == "failed"
        assert re.search(error, said["error"]), said["error"]
        assert said["hint"]
        assert list((tmp_path / "runs" / run_id).iterdir()) == []


@asynchronous
async def test_a_job_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    async with site(tmp_path, Limits(job_s=0.5)) as here:
        said = await here.settled(await here.put(trace("sleep 60")))
        assert (said["state"], said["error"]) == (
            "failed",
            "It took longer than 1 minute, the most that a capture of its size may take.",
        )


@asynchronous
async def test_a_server_that_cannot_start_a_worker_fails_the_run_and_lives(tmp_path: Path) -> None:
    async with site(tmp_path, worker=("/does/not/exist",)) as here:
        for _ in range(3):
            said = await here.settled(await here.put())
            assert said["state"] == "failed"
            assert "can't start a job" in said["error"]


@asynchronous
async def test_runs_wait_for_their_turn_and_know_it(tmp_path: Path) -> None:
    async with site(tmp_path, ONE_JOB) as here:
        working = await here.put(trace("sleep 0.5"))
        await here.until(working, "running")
        second, third = await here.put(), await here.put()
        ahead = [(await here.client.get(f"/api/runs/{one}")).json()["ahead"] for one in (second, third)]
        assert ahead == [0, 1]
        assert [(await here.settled(one))["state"] for one in (working, second, third)] == ["done"] * 3


@asynchronous
async def test_a_waiting_run_can_be_cancelled(tmp_path: Path) -> None:
    async with site(tmp_path, ONE_JOB) as here:
        working = await here.put(trace("sleep 30"))
        await here.until(working, "running")
        waiting = await here.put()
        assert (await here.client.post(f"/api/runs/{waiting}/cancel")).json()["state"] == "cancelled"
        assert list((tmp_path / "runs" / waiting).iterdir()) == []


@asynchronous
async def test_a_running_job_can_be_cancelled_and_its_slot_is_free_again(tmp_path: Path) -> None:
    async with site(tmp_path, ONE_JOB) as here:
        working = await here.put(trace("sleep 60"))
        await here.until(working, "running")
        answer = await here.client.post(f"/runs/{working}/cancel")
        assert answer.status_code == 303
        assert (await here.settled(working))["state"] == "cancelled"
        assert list((tmp_path / "runs" / working).iterdir()) == []
        assert (await here.settled(await here.put()))["state"] == "done"


@asynchronous
async def test_a_finished_run_cannot_be_cancelled_any_more(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put()
        await here.settled(run_id)
        assert (await here.client.post(f"/api/runs/{run_id}/cancel")).json()["state"] == "done"


@asynchronous
async def test_a_running_job_can_be_deleted(tmp_path: Path) -> None:
    async with site(tmp_path, ONE_JOB) as here:
        working = await here.put(trace("sleep 60"))
        await here.until(working, "running")
        assert (await here.client.delete(f"/api/runs/{working}")).status_code == 204
        assert list((tmp_path / "runs").iterdir()) == []
        assert (await here.settled(await here.put()))["state"] == "done"


@asynchronous
async def test_a_server_that_stops_puts_its_job_back_and_the_next_one_does_it(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put(trace("sleep 2"))
        await here.until(run_id, "running")
    async with site(tmp_path) as here:
        said = await here.settled(run_id)
        assert said["state"] == "done"


@asynchronous
async def test_what_a_killed_server_left_is_put_right(tmp_path: Path) -> None:
    folder, store = DataFolder(tmp_path), Store(tmp_path / "runs.db")
    for name in ("again", "halfway"):
        store.add(StoredRun(id=name, name=name, created_s=0))
        (tmp_path / "arrived").write_bytes(trace())
        folder.adopt(name, tmp_path / "arrived")
        store.claim()
    (folder.run("halfway") / "scratch" / "finished").mkdir(parents=True)
    shutil.copytree(folder.run("halfway") / "scratch" / "finished", folder.report("halfway"))
    store.add(StoredRun(id="done", name="done", state="done"))
    folder.report("done").mkdir(parents=True)
    folder.upload("done").write_bytes(b"left over")
    (folder.incoming / "part").write_bytes(b"half an upload")
    folder.run("nobody").mkdir()
    store.close()
    async with site(tmp_path) as here:
        assert [(await here.settled(one))["state"] for one in ("again", "halfway")] == ["done", "done"]
        assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["again", "done", "halfway"]
        assert list(folder.incoming.iterdir()) == []
        assert not folder.upload("done").exists()
        assert (folder.report("halfway") / "report.json").exists()


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("what", ["publish", "finish", "claim"])
@asynchronous
async def test_bookkeeping_on_a_full_disk_is_tried_until_there_is_room(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervise, "PAUSES_S", (0.01,))
    async with site(tmp_path, ONE_JOB) as here:
        owner: Any = here.service.folder if what == "publish" else here.service.store
        real, calls = getattr(owner, what), [0]

        def failing(*args: Any, **values: Any) -> Any:
            calls[0] += 1
            if calls[0] <= 3:
                raise FULL if what == "publish" else full_database()
            return real(*args, **values)

        monkeypatch.setattr(owner, what, failing)
        first, second = await here.put(), await here.put()
        assert [(await here.settled(one))["state"] for one in (first, second)] == ["done", "done"]
        assert calls[0] > 3
    assert "No space" in caplog.text or "full" in caplog.text


def full_database() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


@asynchronous
async def test_a_slot_that_breaks_is_started_again_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervise, "PAUSES_S", (0.01,))
    async with site(tmp_path, ONE_JOB) as here:
        real, calls = here.service.folder.publish, [0]

        def breaks_once(*args: Any) -> None:
            calls[0] += 1
            if calls[0] == 1:
                raise KeyError("a mistake of ours")
            real(*args)

        monkeypatch.setattr(here.service.folder, "publish", breaks_once)
        assert (await here.settled(await here.put()))["state"] == "done"
        assert (await here.settled(await here.put()))["state"] == "done"
    assert "a mistake of ours" in caplog.text


@asynchronous
async def test_a_run_whose_bookkeeping_always_breaks_is_failed_and_the_next_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "PAUSES_S", (0.01,))
    async with site(tmp_path, ONE_JOB) as here:
        real = here.service.store.finish

        def breaks(run_id: str, state: Any, **found: Any) -> bool:
            if state == "done" and found.get("verdict") == "verdict on bad":
                raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
            return real(run_id, state, **found)

        monkeypatch.setattr(here.service.store, "finish", breaks)
        bad, good = await here.put(name="bad"), await here.put(name="good")
        said = await here.settled(bad)
        assert (said["state"], (await here.settled(good))["state"]) == ("failed", "done")
        assert "twice" in said["error"]


@asynchronous
async def test_a_job_that_says_done_without_a_report_has_failed(tmp_path: Path) -> None:
    async with site(tmp_path, ONE_JOB) as here:
        said = await here.settled(await here.put(trace("empty")))
        assert (said["state"], "no report" in said["error"]) == ("failed", True)


@asynchronous
async def test_jobs_wait_for_room_on_the_disk_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "PAUSES_S", (0.01,))
    async with site(tmp_path, ONE_JOB) as here:
        usage = shutil.disk_usage(tmp_path)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))
        stuck = StoredRun(id="stuck", name="stuck")
        (tmp_path / "arrived").write_bytes(trace())
        here.service.folder.adopt("stuck", tmp_path / "arrived")
        here.service.store.add(stuck)
        await here.service.jobs.added()
        await asyncio.sleep(0.1)
        said = (await here.client.get("/api/runs/stuck")).json()
        assert (said["state"], said["waits_for"]) == ("queued", "room on the server's disk")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
        assert (await here.settled("stuck"))["state"] == "done"


@asynchronous
async def test_a_job_under_which_the_disk_fills_up_is_tried_again_and_then_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "PAUSES_S", (0.01,))
    async with site(tmp_path, ONE_JOB) as here:
        said = await here.settled(await here.put(trace("full")))
        assert (said["state"], "disk was full" in said["error"]) == ("failed", True)
        assert here.service.store.get(said["id"]).attempts == 2  # type: ignore[union-attr]
