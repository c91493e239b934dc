from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.web.limits import Limits
from bubblefinder.web.pages import PER_PAGE
from bubblefinder.web.shelf import SORTS, StoredRun
from bubblefinder.web.store import new_id
from tests.web import asynchronous, site, trace

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "</script><img src=x onerror=alert(1)>\"'{{7*7}}"
PAGE = {"accept": "text/html"}


@asynchronous
async def test_the_empty_page_says_what_to_do_and_where_the_file_goes(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        page = (await here.client.get("/")).text
        assert "No runs yet" in page
        assert "goes to this server and nowhere else" in page
        assert 'enctype="multipart/form-data"' in page


@asynchronous
async def test_hostile_names_are_text_on_every_page(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        done = await here.put(name=HOSTILE, label=HOSTILE, commit=HOSTILE)
        await here.settled(done)
        other = await here.put(name=HOSTILE, label=HOSTILE)
        await here.settled(other)
        failed = await here.put(trace(f"fail {HOSTILE}"), name=HOSTILE)
        await here.settled(failed)
        query = {"label": HOSTILE, "search": HOSTILE, "metric": HOSTILE, "sort": HOSTILE}
        for path in (
            "/",
            "/trend",
            f"/runs/{done}",
            f"/runs/{failed}",
            f"/runs/{done}/timeline",
            f"/diff?base={done}&head={other}",
        ):
            separator = "" if "?" in path else "?"
            page = await here.client.get(path, params=query) if separator else await here.client.get(path)
            assert page.status_code == 200, path
            assert "<img" not in page.text, path
            assert "onerror=alert(1)>" not in page.text, path
            assert "{{7*7}}" in page.text, path


@asynchronous
async def test_each_state_of_a_run_has_its_page(tmp_path: Path) -> None:
    async with site(tmp_path, Limits(jobs=1)) as here:
        running = await here.put(trace("sleep 30"))
        await here.until(running, "running")
        waiting = await here.put(trace("fail no luck"))
        page = (await here.client.get(f"/runs/{running}")).text
        assert '<meta http-equiv="refresh" content="2">' in page
        assert f'action="/runs/{running}/cancel"' in page
        assert "Waiting" in (await here.client.get(f"/runs/{waiting}")).text
        await here.client.post(f"/runs/{running}/cancel")
        assert "was cancelled" in (await here.client.get(f"/runs/{running}")).text
        await here.settled(waiting)
        page = (await here.client.get(f"/runs/{waiting}")).text
        assert "no luck" in page
        assert "<p>Try another</p>" in page
        assert '<span class="tag state-failed">failed</span> no luck' in page


@asynchronous
async def test_a_report_comes_with_its_downloads_and_what_to_compare_it_with(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        earlier = await here.put(name="earlier", label="nightly")
        await here.settled(earlier)
        base = await here.put(name="base")
        await here.settled(base)
        run_id = await here.put(name="head", label="nightly", baseline=base)
        await here.settled(run_id)
        page = (await here.client.get(f"/runs/{run_id}")).text
        assert "a body" in page
        for suffix in ("html", "md", "json", "perfetto.json.gz"):
            assert f'href="/api/runs/{run_id}/report.{suffix}"' in page
        assert f'href="/diff?base={base}&amp;head={run_id}"' in page
        assert f'href="/diff?base={earlier}&amp;head={run_id}"' in page
        assert f'<option value="{earlier}">' in page


@asynchronous
async def test_a_report_waits_for_its_baseline_and_says_so(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        base = await here.put(trace("sleep 30"), name="base")
        run_id = await here.put(name="head", baseline=base)
        await here.settled(run_id)
        page = (await here.client.get(f"/runs/{run_id}")).text
        assert f'data-baseline="{base}" hidden' in page
        assert '<noscript><meta http-equiv="refresh"' in page
        await here.client.post(f"/api/runs/{base}/cancel")
        page = (await here.client.get(f"/runs/{run_id}")).text
        assert "data-baseline" not in page
        assert "is cancelled" in page


@asynchronous
async def test_a_comparison_names_its_sides_and_can_be_swapped(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        base, head = await here.put(name="base"), await here.put(name="head")
        await here.settled(base)
        await here.settled(head)
        page = (await here.client.get(f"/diff?base={base}&head={head}")).text
        assert "body.html of a comparison" in page
        assert f'href="/diff?base={head}&amp;head={base}"' in page
        assert f"/api/diff?base={base}&amp;head={head}&amp;format=markdown" in page


@asynchronous
async def test_the_list_shows_a_page_at_a_time_and_keeps_the_search(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        for number in range(PER_PAGE + 3):
            here.service.store.add(
                StoredRun(id=new_id(), name=f"run{number:03}", label="many", state="done", created_s=number)
            )
        first = (await here.client.get("/?search=many")).text
        second = (await here.client.get("/?search=many&page=2")).text
        assert "Page 1 of 2" in first
        assert f"run{PER_PAGE + 2:03}" in first
        assert "run000" not in first
        assert "run000" in second
        assert "search=many&amp;sort=created&amp;order=desc&amp;page=2" in first
        assert "No run has" in (await here.client.get("/?search=nothing")).text


@pytest.mark.parametrize("sort", SORTS)
@asynchronous
async def test_the_list_says_by_what_it_is_sorted(tmp_path: Path, sort: str) -> None:
    async with site(tmp_path) as here:
        here.service.store.add(StoredRun(id=new_id(), name="a", state="done", bubble_share=0.1, at_least=True))
        page = (await here.client.get(f"/?sort={sort}&order=asc")).text
        assert page.count('aria-sort="ascending"') == (sort != "name")
        assert "≥ 10.0 %" in page


@pytest.mark.parametrize("number", ["0", "-1", "x", "9" * 40, "\u0663"])
@asynchronous
async def test_any_page_number_is_answered(tmp_path: Path, number: str) -> None:
    async with site(tmp_path) as here:
        assert (await here.client.get("/", params={"page": number})).status_code == 200


@asynchronous
async def test_the_trend_draws_a_point_a_run_and_links_it(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        page = (await here.client.get("/trend")).text
        assert "No finished run has a label" in page
        assert '<a href="/">upload a trace</a>' in page
        runs = []
        for number in range(3):
            value: dict[str, float | None] = {} if number == 1 else {"step.duration.p50": 7e6 + number}
            run = StoredRun(id=new_id(), name=f"n{number}", label="x", state="done", created_s=number, metrics=value)
            here.service.store.add(run)
            runs.append(run.id)
        page = (await here.client.get("/trend?label=x")).text
        assert page.count("<circle") == 2
        assert page.count("<polyline") == 0
        assert f"/diff?base={runs[1]}&amp;head={runs[2]}" in page
        assert "–" in page


@asynchronous
async def test_a_trend_that_has_no_line_says_what_to_do(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        only = StoredRun(id=new_id(), name="n", label="x", state="done", metrics={"step.duration.p50": 7e6})
        here.service.store.add(only)
        assert "One run so far" in (await here.client.get("/trend?label=x")).text
        other = (await here.client.get("/trend?label=x&metric=step.busy.p50")).text
        assert "No run of this label has this metric" in other
        assert "<svg" not in other


@asynchronous
async def test_a_comparison_of_one_side_says_what_is_missing(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put()
        await here.settled(run_id)
        page = await here.client.get(f"/diff?base={run_id}", headers=PAGE)
        assert page.status_code == 400
        assert "needs a base and a head" in page.text
        assert "Tick both" in page.text


@asynchronous
async def test_people_get_a_page_for_an_error(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        page = await here.client.get("/runs/unknown", headers=PAGE)
        assert page.status_code == 404
        assert "<h1>Not here</h1>" in page.text
        assert 'href="/"' in page.text


@asynchronous
async def test_deleting_leads_back_to_the_list(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put()
        await here.settled(run_id)
        answer = await here.client.post(f"/runs/{run_id}/delete")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert here.service.store.ids() == set()


@asynchronous
async def test_large_answers_are_packed(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        answer = await here.client.get("/static/plotly.js")
        assert answer.headers["content-encoding"] == "gzip"
        assert int(answer.headers.get("content-length", "0")) < 2_000_000


@asynchronous
async def test_what_people_say_of_a_run_can_be_edited_on_its_page_and_by_the_api(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put(label="old")
        await here.settled(run_id)
        form = {"label": "new", "commit": " abc ", "note": "<b>after</b> the update", "kept": "on"}
        assert (await here.client.post(f"/runs/{run_id}/edit", data=form)).status_code == 303
        page = (await here.client.get(f"/runs/{run_id}")).text
        assert "&lt;b&gt;after&lt;/b&gt; the update" in page
        said = (await here.client.get(f"/api/runs/{run_id}")).json()
        assert (said["label"], said["commit"], said["kept"]) == ("new", "abc", True)
        await here.client.post(f"/runs/{run_id}/edit", data={"label": "", "note": "", "commit": "abc"})
        said = (await here.client.patch(f"/api/runs/{run_id}", json={"note": "x" * 5_000})).json()
        assert (said["label"], len(said["note"]), said["kept"]) == (None, 1_000, False)


@pytest.mark.parametrize("body", ["", "[]", '{"state": "done"}', '{"label": 3}', '{"kept": "yes"}', "[" * 5_000])
@asynchronous
async def test_what_is_no_change_of_a_run_is_refused(tmp_path: Path, body: str) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put()
        answer = await here.client.patch(f"/api/runs/{run_id}", content=body)
        assert answer.status_code == 400
        assert (await here.client.patch("/api/runs/none", content=body)).status_code == 404


@asynchronous
async def test_an_upload_with_a_baseline_ends_at_what_changed(tmp_path: Path) -> None:
    async with site(tmp_path, Limits(jobs=2)) as here:
        base = await here.put(trace("sleep 2"), name="base")
        head = await here.put(name="head", baseline=base)
        await here.settled(head)
        waiting = await here.client.get(f"/runs/{head}?then=diff")
        assert "Once both are read" in waiting.text
        assert "Cancel" not in waiting.text
        await here.settled(base)
        arrived = await here.client.get(f"/runs/{head}?then=diff")
        assert (arrived.status_code, arrived.headers["location"]) == (303, f"/diff?base={base}&head={head}")
        assert (await here.client.get(f"/runs/{head}")).status_code == 200
        await here.client.delete(f"/api/runs/{base}")
        assert (await here.client.get(f"/runs/{head}?then=diff")).status_code == 200


@asynchronous
async def test_the_list_filters_by_label_and_shows_the_change_against_the_run_before(tmp_path: Path) -> None:
    async with site(tmp_path, Limits(jobs=1)) as here:
        first = await here.put(label="a & b", name="first")
        second = await here.put(label="a & b", name="second")
        other = await here.put(label="c", name="other")
        for one in (first, second, other):
            await here.settled(one)
        here.service.store.edit(second, step_p50_ns=7.7e6)
        page = (await here.client.get("/", params={"label": "a & b"})).text
        assert f"run-{first}" in page
        assert f"run-{other}" not in page
        assert f"/diff?base={first}&amp;head={second}" in page
        assert "+10.0 %" in page
