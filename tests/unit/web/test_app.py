from __future__ import annotations

import errno
import shutil
import sqlite3
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.web import asynchronous, site, trace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.web import Site


def plainly(here: Site) -> httpx.AsyncClient:
    """A client that sees what a browser would see of an error in the application."""
    assert isinstance(here.client._transport, httpx.ASGITransport)
    transport = httpx.ASGITransport(here.client._transport.app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


@pytest.mark.parametrize("accept", ["text/html", "*/*"])
@asynchronous
async def test_a_mistake_of_ours_is_an_answer_like_any_other(
    tmp_path: Path, accept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("secret detail")

    async with site(tmp_path) as here, plainly(here) as client:
        monkeypatch.setattr(here.service.store.shelf, "listed", broken)
        answer = await client.get("/api/runs" if accept == "*/*" else "/", headers={"accept": accept})
        assert answer.status_code == 500
        assert "secret detail" not in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-type"].startswith("text/html" if accept == "text/html" else "application/json")


@pytest.mark.parametrize("gone", ["body.html", "report.json", "events", ""])
@asynchronous
async def test_missing_files_of_a_report_are_said_and_not_an_internal_error(tmp_path: Path, gone: str) -> None:
    async with site(tmp_path) as here, plainly(here) as client:
        run_id = await here.put()
        await here.settled(run_id)
        path = here.service.folder.report(run_id) / gone
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        for address in (f"/runs/{run_id}", f"/api/runs/{run_id}/report.json", f"/api/runs/{run_id}/window"):
            answer = await client.get(address)
            assert answer.status_code in {200, 410}, address
            if gone == "":
                assert answer.status_code == 410
                assert "gone" in answer.json()["error"]
                assert answer.json()["hint"]
            assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("content", [b"", b"{", b'{"tracks": 3}', b"\xff\xfe"])
@asynchronous
async def test_damaged_events_are_said(tmp_path: Path, content: bytes) -> None:
    async with site(tmp_path) as here, plainly(here) as client:
        run_id = await here.put()
        await here.settled(run_id)
        events = here.service.folder.report(run_id) / "events"
        events.mkdir()
        (events / "index.json").write_bytes(content)
        assert (await client.get(f"/api/runs/{run_id}/window")).status_code == 410


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 507),
        (sqlite3.OperationalError("database or disk is full"), 507),
        (sqlite3.DatabaseError("database disk image is malformed"), 500),
        (OSError(errno.EIO, "Input/output error"), 500),
    ],
    ids=str,
)
@asynchronous
async def test_a_failing_disk_is_said_as_one(
    tmp_path: Path, error: Exception, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        if isinstance(error, sqlite3.Error):
            error.sqlite_errorcode = sqlite3.SQLITE_FULL if status == 507 else sqlite3.SQLITE_CORRUPT
        raise error

    async with site(tmp_path) as here, plainly(here) as client:
        monkeypatch.setattr(here.service.store, "add", failing)
        answer = await client.put("/api/runs?name=a", content=trace())
        assert answer.status_code == status
        assert answer.json()["hint"]
        assert list((tmp_path / "runs").iterdir()) == []


@asynchronous
async def test_a_search_of_any_length_is_answered(tmp_path: Path) -> None:
    async with site(tmp_path) as here, plainly(here) as client:
        for address in ("/api/runs", "/"):
            for search in ("a" * 60_000, "a " * 20_000, "%_\\" * 7_000):
                assert (await client.get(address, params={"search": search})).status_code == 200
