from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bubblefinder.web.limits import Limits
from tests.web import asynchronous, site, trace

if TYPE_CHECKING:
    from pathlib import Path


@asynchronous
async def test_a_run_tells_what_it_is_and_nothing_about_paths(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        base = await here.put(name="base")
        run_id = await here.put(name="a.sqlite", label="nightly", commit="abc", baseline=base)
        said = await here.settled(run_id)
        assert said["name"] == "a.sqlite"
        assert (said["label"], said["commit"], said["baseline"]) == ("nightly", "abc", base)
        assert (said["step_p50_ns"], said["bubble_share"], said["gpu"]) == (7e6, 0.25, "H200")
        assert said["url"] == f"/runs/{run_id}"
        assert str(tmp_path) not in json.dumps(said)


@asynchronous
async def test_the_list_can_be_searched(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        for label in ("nightly", "nightly", "other"):
            await here.put(label=label)
        answer = (await here.client.get("/api/runs", params={"search": "night"})).json()
        assert answer["total"] == 2
        assert {run["label"] for run in answer["runs"]} == {"nightly"}


@pytest.mark.parametrize(
    ("suffix", "media_type"),
    [
        ("json", "application/json"),
        ("html", "text/html; charset=utf-8"),
        ("md", "text/markdown; charset=utf-8"),
        ("perfetto.json.gz", "application/gzip"),
    ],
)
@asynchronous
async def test_reports_come_in_every_format_with_no_power_over_the_site(
    tmp_path: Path, suffix: str, media_type: str
) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put(name='we"ird\u00e9.sqlite', label="x")
        await here.settled(run_id)
        answer = await here.client.get(f"/api/runs/{run_id}/report.{suffix}")
        assert answer.status_code == 200
        assert answer.text == f"report.{suffix} of x"
        assert answer.headers["content-type"] == media_type
        assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts")
        assert "allow-same-origin" not in answer.headers["content-security-policy"]
        assert "\n" not in answer.headers["content-disposition"]


@asynchronous
async def test_what_is_not_there_is_said_in_json(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put(trace("fail no"))
        await here.settled(run_id)
        for path, status in (
            ("/api/runs/unknown", 404),
            ("/api/runs/..%2f..%2fetc", 404),
            ("/api/runs/unknown/report.json", 404),
            (f"/api/runs/{run_id}/report.json", 409),
            (f"/api/runs/{run_id}/report.exe", 404),
            (f"/api/runs/{run_id}/report.json/../../x", 404),
            (f"/api/runs/{run_id}/window", 409),
            ("/api/nothing", 404),
            ("/api/diff", 400),
            (f"/api/diff?base={run_id}&head={run_id}", 409),
            ("/api/diff?base=x&head=y", 404),
            ("/api/diff?base=x&head=y&format=exe", 404),
            ("/api/diff?head=y" + "&base=x" * 30, 400),
        ):
            answer = await here.client.get(path)
            assert answer.status_code == status, path
            assert answer.json()["error"], path
        assert (await here.client.delete("/api/runs/unknown")).status_code == 404
        assert (await here.client.post("/api/runs")).status_code == 405


@asynchronous
async def test_runs_and_groups_of_runs_are_compared(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        runs = [await here.put() for _ in range(3)]
        for run_id in runs:
            await here.settled(run_id)
        for form, name in (("json", "diff.json"), ("html", "diff.html"), ("markdown", "diff.md")):
            query = {"base": runs[:2], "head": runs[2], "format": form}
            answer = await here.client.get("/api/diff", params=query)
            assert (answer.status_code, answer.text) == (200, f"{name} of a comparison")
        assert list((tmp_path / "incoming").iterdir()) == []


@asynchronous
async def test_a_comparison_that_fails_says_why(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put()
        await here.settled(run_id)
        here.service.processes.command = ("/does/not/exist",)
        answer = await here.client.get("/api/diff", params={"base": run_id, "head": run_id})
        assert answer.status_code == 422
        assert "can't start" in answer.json()["error"]


@pytest.mark.parametrize(
    "query", ["start=x", "start=1.5", "start=--1", "start=5&end=5", "start=9&end=1", "end=" + "9" * 30, "start=\u0663"]
)
@asynchronous
async def test_a_window_that_is_none_is_refused(tmp_path: Path, query: str) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put()
        await here.settled(run_id)
        answer = await here.client.get(f"/api/runs/{run_id}/window?{query}")
        assert answer.status_code == 400


@asynchronous
async def test_the_trend_of_a_label_is_in_order_and_has_no_zero_for_unknown(tmp_path: Path) -> None:
    async with site(tmp_path, Limits(jobs=1)) as here:
        runs = [await here.put(label="x", commit=str(number)) for number in range(3)]
        for run_id in runs:
            await here.settled(run_id)
        answer = (await here.client.get("/api/trend", params={"label": "x"})).json()
        assert [(p["commit"], p["value"]) for p in answer["points"]] == [("0", 7e6), ("1", 7e6), ("2", 7e6)]
        unknown = (await here.client.get("/api/trend", params={"label": "x", "metric": "no.such"})).json()
        assert [p["value"] for p in unknown["points"]] == [None] * 3


@asynchronous
async def test_labels_and_names_are_data_wherever_they_point(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put(name="../../../tmp/x", label="../../etc/passwd", commit="'; DROP TABLE runs; --")
        said = await here.settled(run_id)
        assert (said["name"], said["label"], said["commit"]) == ("x", "../../etc/passwd", "'; DROP TABLE runs; --")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["incoming", "lock", "reserve", "runs", "runs.db"]
        assert [path.name for path in (tmp_path / "runs").iterdir()] == [run_id]
        assert here.service.store.ids() == {run_id}
