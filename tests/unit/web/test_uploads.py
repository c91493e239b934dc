from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from bubblefinder.web import uploads
from bubblefinder.web.limits import Limits
from bubblefinder.web.uploads import file_name, text
from tests.web import MAGIC, asynchronous, site, trace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.web import Site


def nothing_stored(here: Site, root: Path) -> None:
    assert here.service.store.ids() == set()
    assert list((root / "incoming").iterdir()) == []
    assert list((root / "runs").iterdir()) == []


@asynchronous
async def test_a_raw_body_is_stored_as_it_came_and_answered_with_an_address(tmp_path: Path) -> None:
    async with site(tmp_path, Limits(jobs=1)) as here:
        content = trace("sleep 20", 3 << 20)
        answer = await here.client.put("/api/runs?name=a.sqlite&label=x", content=content)
        assert answer.status_code == 202
        said = answer.json()
        assert said["url"] == f"/runs/{said['id']}" == answer.headers["location"]
        assert (tmp_path / "runs" / said["id"] / "upload").read_bytes() == content
        assert list((tmp_path / "incoming").iterdir()) == []


@asynchronous
async def test_an_announced_length_beyond_the_limit_is_refused_before_the_body(tmp_path: Path) -> None:
    async with site(tmp_path, Limits(upload_bytes=1000)) as here:
        answer = await here.client.put("/api/runs?name=a", content=MAGIC, headers={"content-length": "99999"})
        assert answer.status_code == 413
        assert "longer than" in answer.json()["error"]
        nothing_stored(here, tmp_path)


@pytest.mark.parametrize("announced", [None, "10", "-5", "nonsense", "9" * 400])
@asynchronous
async def test_bytes_are_counted_whatever_the_header_says(tmp_path: Path, announced: str | None) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield MAGIC
        for _ in range(10):
            yield bytes(300)

    async with site(tmp_path, Limits(upload_bytes=1000)) as here:
        headers = {} if announced is None else {"content-length": announced}
        answer = await here.client.put("/api/runs?name=a", content=chunks(), headers=headers)
        assert answer.status_code == 413
        nothing_stored(here, tmp_path)


@pytest.mark.parametrize(
    ("content", "status"), [(b"", 400), (b"hello, world", 415), (b"PAR1" + bytes(50), 415), (b"\x7fELF", 415)]
)
@asynchronous
async def test_what_is_no_trace_is_refused_and_not_kept(tmp_path: Path, content: bytes, status: int) -> None:
    async with site(tmp_path) as here:
        answer = await here.client.put("/api/runs?name=a.sqlite", content=content)
        assert answer.status_code == status
        assert answer.json()["hint"]
        nothing_stored(here, tmp_path)


@asynchronous
async def test_a_report_needs_nsys_on_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(tmp_path) as here:
        monkeypatch.setattr(shutil, "which", lambda _: None)
        refused = await here.client.put("/api/runs?name=a.nsys-rep", content=b"private format")
        assert refused.status_code == 415
        assert "nsys export" in refused.json()["hint"]
        nothing_stored(here, tmp_path)
        monkeypatch.setattr(shutil, "which", lambda name: f"/opt/{name}")
        assert (await here.client.put("/api/runs?name=a.nsys-rep", content=b"private format")).status_code == 202


@asynchronous
async def test_a_baseline_that_is_not_there_is_refused(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        answer = await here.client.put("/api/runs?name=a&baseline=../../etc", content=trace())
        assert answer.status_code == 404
        nothing_stored(here, tmp_path)


@asynchronous
async def test_a_full_folder_takes_no_more(tmp_path: Path) -> None:
    async with site(tmp_path, Limits(disk_bytes=2_000)) as here:
        refused = await here.client.put("/api/runs?name=b", content=trace(padding=5_000))
        assert refused.status_code == 507
        nothing_stored(here, tmp_path)


@asynchronous
async def test_a_full_disk_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(tmp_path) as here:
        usage = shutil.disk_usage(tmp_path)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100))
        assert (await here.client.put("/api/runs?name=a", content=trace())).status_code == 507


@asynchronous
async def test_a_full_queue_takes_no_more(tmp_path: Path) -> None:
    async with site(tmp_path, Limits(jobs=1, waiting=2)) as here:
        working = await here.put(trace("sleep 30"))
        await here.until(working, "running")
        waiting = [await here.put(trace("sleep 30")) for _ in range(2)]
        refused = await here.client.put("/api/runs?name=a", content=trace())
        assert refused.status_code == 503
        assert here.service.store.ids() == {working, *waiting}


@asynchronous
async def test_an_upload_that_is_broken_off_leaves_nothing(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        scope = {
            "type": "http", "method": "PUT", "path": "/api/runs", "query_string": b"name=a", "http_version": "1.1",
            "headers": [(b"host", b"127.0.0.1")], "scheme": "http", "server": ("127.0.0.1", 80),
        }  # fmt: skip
        told: Iterator[dict[str, Any]] = iter(
            [{"type": "http.request", "body": MAGIC, "more_body": True}, {"type": "http.disconnect"}]
        )
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return next(told)

        async def send(message: Any) -> None:
            sent.append(message)

        assert isinstance(here.client._transport, httpx.ASGITransport)
        await here.client._transport.app(scope, receive, send)
        assert sent[0]["status"] == 400
        nothing_stored(here, tmp_path)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a.sqlite", "a.sqlite"),
        ("../../etc/passwd", "passwd"),
        ("C:\\traces\\a.sqlite", "a.sqlite"),
        ("dir/", "dir"),
        ("", "trace"),
        (None, "trace"),
        ("a\n\x1b[31mb", "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[31mb"),
    ],
)
def test_a_file_name_is_one_printable_word(given: str | None, shown: str) -> None:
    assert file_name(given) == shown


def test_long_names_and_labels_are_cut() -> None:
    assert len(file_name("x" * 5000)) == uploads._NAME_CHARACTERS
    assert len(text("y" * 5000) or "") == 200
    assert text("   ") is None
