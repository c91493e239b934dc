from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.web.limits import Limits
from tests.web import asynchronous, site, trace

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from tests.web import Site


async def send(here: Site, files: dict[str, tuple[str, bytes]], **fields: str) -> httpx.Response:
    return await here.client.post("/upload", data=fields, files=files)


@asynchronous
async def test_one_file_becomes_a_run(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        answer = await send(here, {"file": ("dir/a.sqlite", trace(padding=3 << 20))}, label="nightly", commit="abc")
        assert answer.status_code == 303
        run_id = answer.headers["location"].removeprefix("/runs/")
        said = await here.settled(run_id)
        assert (said["state"], said["name"], said["label"], said["commit"]) == ("done", "a.sqlite", "nightly", "abc")


@asynchronous
async def test_the_second_file_becomes_the_baseline(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        answer = await send(here, {"file": ("head", trace()), "baseline": ("base", trace())}, label="nightly")
        said = await here.settled(answer.headers["location"].removeprefix("/runs/"))
        base = await here.settled(said["baseline"])
        assert (said["name"], base["name"], base["label"]) == ("head", "base", None)


@asynchronous
async def test_an_empty_second_field_is_no_baseline(tmp_path: Path) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + trace()
    body += b'\r\n--x\r\nContent-Disposition: form-data; name="baseline"; filename=""\r\n\r\n\r\n--x--\r\n'
    async with site(tmp_path) as here:
        headers = {"content-type": "multipart/form-data; boundary=x"}
        answer = await here.client.post("/upload", content=body, headers=headers)
        assert answer.status_code == 303
        assert len(here.service.store.ids()) == 1


@asynchronous
async def test_the_bytes_arrive_as_they_were_sent(tmp_path: Path) -> None:
    content = trace("sleep 20") + b"\r\n--not the boundary\r\n\0\xff" * 9999
    async with site(tmp_path, Limits(jobs=1)) as here:
        answer = await send(here, {"file": ("a", content)})
        run_id = answer.headers["location"].removeprefix("/runs/")
        assert (tmp_path / "runs" / run_id / "upload").read_bytes() == content


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "multipart/form-data; boundary=x", 400),
        (b"garbage", "multipart/form-data; boundary=x", 400),
        (
            b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nSQLite',
            "multipart/form-data; boundary=x",
            400,
        ),
        (b"--x\r\n\r\n" * 50, "multipart/form-data; boundary=x", 400),
        (
            b'--x\r\nContent-Disposition: form-data; name="label"\r\n\r\n' + b"y" * 9000,
            "multipart/form-data; boundary=x",
            413,
        ),
        (
            b'--x\r\nContent-Disposition: form-data; name="label"\r\n\r\nhi\r\n--x--\r\n',
            "multipart/form-data; boundary=x",
            400,
        ),
        (b"a=b", "application/x-www-form-urlencoded", 415),
        (b"a=b", "multipart/form-data", 415),
    ],
    ids=["empty", "garbage", "cut", "parts", "long-field", "no-file", "not-multipart", "no-boundary"],
)
@asynchronous
async def test_a_broken_form_is_refused_and_nothing_is_kept(
    tmp_path: Path, body: bytes, kind: str, status: int
) -> None:
    async with site(tmp_path) as here:
        answer = await here.client.post("/upload", content=body, headers={"content-type": kind})
        assert answer.status_code == status, answer.text
        assert here.service.store.ids() == set()
        assert list((tmp_path / "incoming").iterdir()) == []


@asynchronous
async def test_a_file_beyond_the_limit_is_refused_on_a_page(tmp_path: Path) -> None:
    async with site(tmp_path, Limits(upload_bytes=10_000)) as here:
        files = {"file": ("a", trace(padding=90_000))}
        answer = await here.client.post("/upload", files=files, headers={"accept": "text/html"})
        assert answer.status_code == 413
        assert "longer than" in answer.text
        assert "<h1>Too large</h1>" in answer.text
        assert list((tmp_path / "incoming").iterdir()) == []
