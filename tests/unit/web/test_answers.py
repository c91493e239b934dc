from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.web import pieces, service
from bubblefinder.web.pieces import Kept, Pieces
from tests.web import asynchronous, site, trace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("path", ["/", "/api/runs", "/trend?label=a", "/api/trend?label=a", "/?sort=step&search=x"])
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
@asynchronous
async def test_what_is_kept_is_what_would_be_made_afresh_and_no_older(tmp_path: Path, path: str, encoding: str) -> None:
    async with site(tmp_path) as here:
        for name in ("x1", "x2"):
            await here.settled(await here.put(name=name, label="a"))
            headers = {"accept-encoding": encoding}
            first, again = [await here.client.get(path, headers=headers) for _ in range(2)]
            assert here.service.answers._kept
            here.service.answers, here.service.pieces = Kept(most=8), Pieces()
            fresh = await here.client.get(path, headers=headers)
            assert first.text == again.text == fresh.text
            assert name in fresh.text or "api/trend" in path
            assert again.headers["content-type"] == fresh.headers["content-type"]


@asynchronous
async def test_a_trend_is_kept_while_the_finished_runs_of_its_label_are_the_same(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put(label="a")
        await here.settled(run_id)
        await here.settled(await here.put(label="b"))

        async def is_kept() -> list[bool]:
            before = dict(here.service.answers._kept)
            for path in ("/trend?label=a", "/api/trend?label=a"):
                await here.client.get(path)
            return [before.get(asked) is kept for asked, kept in here.service.answers._kept.items()]

        await is_kept()
        await here.settled(await here.put(label="b"))
        waiting = await here.put(trace("sleep 9"), label="a")
        assert await is_kept() == [True, True]
        await here.client.patch(f"/api/runs/{run_id}", json={"note": "x", "kept": True})
        assert await is_kept() == [True, True]
        for change in ({"commit": "c"}, {"label": "b"}, {"label": "a"}):
            await here.client.patch(f"/api/runs/{run_id}", json=change)
            assert await is_kept() == [False, False]
            assert await is_kept() == [True, True]
        await here.client.delete(f"/api/runs/{waiting}")
        await here.client.delete(f"/api/runs/{run_id}")
        assert await is_kept() == [False, False]
        assert (await here.client.get("/api/trend?label=a")).json()["points"] == []


@asynchronous
async def test_what_is_kept_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(tmp_path) as here:
        for number in range(200):
            await here.client.get(f"/api/runs?search={number}")
        assert len(here.service.answers._kept) == service._ANSWERS
        monkeypatch.setattr(pieces, "_MOST_BYTES", 0)
        await here.client.get("/api/runs")
        assert not here.service.answers._kept
        assert here.service.answers._bytes == 0


@asynchronous
async def test_no_answer_is_kept_for_another_host_or_for_somebody_signed_in(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        for host in ("127.0.0.1", "localhost"):
            assert f"http://{host}/api/runs" in (await here.client.get("/", headers={"host": host})).text
        assert "Sign out" not in (await here.client.get("/")).text
        here.client.cookies.set("bubblefinder", "x")
        assert "Sign out" in (await here.client.get("/")).text
