from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from bubblefinder.web.limits import Limits
from tests.web import asynchronous, site, trace

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


@asynchronous
async def test_the_server_page_says_what_is_at_work_and_what_failed(tmp_path: Path) -> None:
    async with site(tmp_path, Limits(jobs=1)) as here:
        await here.settled(await here.put(trace("fail the trace has <b>a cold</b>"), name="ill"))
        working = await here.put(trace("sleep 30"), name="busy")
        await here.until(working, "running")
        page = (await here.client.get("/server")).text
        assert "the trace has &lt;b&gt;a cold" in page
        assert f"/runs/{working}" in page
        assert "1 of 1 slot at work" in page


@asynchronous
async def test_metrics_are_what_a_monitor_reads(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        await here.settled(await here.put())
        answer = await here.client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        lines = answer.text.splitlines()
        assert 'bubblefinder_runs{state="done"} 1.0' in lines
        assert any(line.startswith("bubblefinder_disk_free_bytes ") for line in lines)
        assert "bubblefinder_jobs_at_work 0.0" in lines


@asynchronous
async def test_health_needs_no_token_and_says_what_ails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(tmp_path, token="a token of some length") as here:  # noqa: S106 - made up
        assert (await here.client.get("/healthz")).json() == {"ok": True, "ails": []}
        for path in ("/metrics", "/server"):
            assert (await here.client.get(path)).status_code in {303, 401}
        usage = shutil.disk_usage(tmp_path)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))
        ill = await here.client.get("/healthz")
        assert (ill.status_code, ill.json()["ails"]) == (503, ["the disk is full"])
        monkeypatch.undo()
        here.service.supervisor._broke["job slot 1"] = here.service.begun_s
        assert (await here.client.get("/healthz")).json()["ails"] == ["job slot 1"]
