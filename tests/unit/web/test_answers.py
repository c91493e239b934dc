from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.web import answers
from tests.web import asynchronous, site

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("path", ["/", "/api/runs", "/trend?label=a", "/api/trend?label=a", "/?sort=step&search=x"])
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
@asynchronous
async def test_what_is_kept_is_what_would_be_made_afresh_and_no_older(
    tmp_path: Path, path: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(tmp_path) as here:
        for name in ("x1", "x2"):
            await here.settled(await here.put(name=name, label="a"))
            headers = {"accept-encoding": encoding}
            first, again = [await here.client.get(path, headers=headers) for _ in range(2)]
            assert here.service.answers._kept
            here.service.answers.forget()
            monkeypatch.setattr(answers, "_MOST_BYTES", 0)
            fresh = await here.client.get(path, headers=headers)
            assert not here.service.answers._kept
            monkeypatch.undo()
            assert first.text == again.text == fresh.text
            assert name in fresh.text or "api/trend" in path
            assert again.headers["content-type"] == fresh.headers["content-type"]


@asynchronous
async def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        for number in range(200):
            await here.client.get(f"/api/runs?search={number}")
        assert len(here.service.answers._kept) <= 128


@asynchronous
async def test_no_answer_is_kept_for_another_host_or_for_somebody_signed_in(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        for host in ("127.0.0.1", "localhost"):
            assert f"http://{host}/api/runs" in (await here.client.get("/", headers={"host": host})).text
        assert "Sign out" not in (await here.client.get("/")).text
        here.client.cookies.set("bubblefinder", "x")
        assert "Sign out" in (await here.client.get("/")).text
