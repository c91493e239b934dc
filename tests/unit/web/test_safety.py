from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from bubblefinder.web.safety import COOKIE, same, session
from tests.web import asynchronous, site, trace

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "a long secret token"  # noqa: S105 - made up


@asynchronous
async def test_every_answer_binds_the_browser(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        for path in ("/", "/api/runs", "/nowhere", "/static/app.css", "/static/nothing"):
            headers = (await here.client.get(path, headers={"accept": "text/html"})).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "same-origin"
            assert headers["cross-origin-resource-policy"] == "same-origin"
            assert "access-control-allow-origin" not in headers


@asynchronous
async def test_scripts_run_by_a_nonce_that_is_never_the_same(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        nonces = set()
        for _ in range(3):
            answer = await here.client.get("/")
            (nonce,) = re.findall(r"script-src 'nonce-([^']+)'", answer.headers["content-security-policy"])
            assert re.findall(r"<script[^>]*>", answer.text) == [f'<script src="/static/upload.js" nonce="{nonce}">']
            nonces.add(nonce)
        assert len(nonces) == 3


@asynchronous
async def test_pages_with_runs_are_not_cached(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        assert (await here.client.get("/")).headers["cache-control"] == "no-store"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost.evil"])
@asynchronous
async def test_a_foreign_name_that_leads_here_is_refused(tmp_path: Path, host: str) -> None:
    async with site(tmp_path) as here:
        assert (await here.client.get("/api/runs", headers={"host": host})).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8350", "localhost", "localhost:1", "[::1]:8350", "[::1]"])
@asynchronous
async def test_this_machines_own_names_are_answered(tmp_path: Path, host: str) -> None:
    async with site(tmp_path) as here:
        assert (await here.client.get("/api/runs", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://127.0.0.1.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=lambda headers: next(iter(headers.values())),
)
@asynchronous
async def test_what_another_sites_page_sends_changes_nothing(tmp_path: Path, headers: dict[str, str]) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put()
        await here.settled(run_id)
        for method, path in (
            ("PUT", "/api/runs?name=x"),
            ("DELETE", f"/api/runs/{run_id}"),
            ("POST", f"/runs/{run_id}/delete"),
            ("POST", f"/api/runs/{run_id}/cancel"),
            ("POST", "/upload"),
        ):
            answer = await here.client.request(method, path, content=trace(), headers=headers)
            assert answer.status_code == 403, path
        assert here.service.store.ids() == {run_id}


@asynchronous
async def test_the_servers_own_page_may_send(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        headers = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
        assert (await here.client.put("/api/runs?name=x", content=trace(), headers=headers)).status_code == 202


@asynchronous
async def test_with_a_token_nothing_is_told_without_it(tmp_path: Path) -> None:
    async with site(tmp_path, token=TOKEN) as here:
        for path in ("/api/runs", "/api/runs/x", "/api/diff"):
            answer = await here.client.get(path)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        for wrong in ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \xe9"):
            refused = await here.client.get("/api/runs", headers=[(b"authorization", wrong.encode("latin-1"))])
            assert refused.status_code == 401
        assert (await here.client.put("/api/runs?name=x", content=trace())).status_code == 401
        page = await here.client.get("/", headers={"accept": "text/html"})
        assert (page.status_code, page.headers["location"]) == (303, "/login")


@asynchronous
async def test_the_token_opens_the_server_to_programs_on_any_host(tmp_path: Path) -> None:
    async with site(tmp_path, token=TOKEN) as here:
        headers = {"authorization": f"Bearer {TOKEN}", "host": "gpu-box.lan:8350"}
        assert (await here.client.get("/api/runs", headers=headers)).status_code == 200
        assert (await here.client.put("/api/runs?name=x", content=trace(), headers=headers)).status_code == 202


@asynchronous
async def test_signing_in_sets_a_cookie_that_no_script_reads_and_that_is_not_the_token(tmp_path: Path) -> None:
    async with site(tmp_path, token=TOKEN) as here:
        assert (await here.client.get("/login")).status_code == 200
        wrong = await here.client.post("/login", data={"token": "guess"})
        assert wrong.status_code == 401
        assert "set-cookie" not in wrong.headers
        right = await here.client.post("/login", data={"token": TOKEN})
        cookie = right.headers["set-cookie"]
        assert right.status_code == 303
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert TOKEN not in cookie
        assert (await here.client.get("/api/runs")).status_code == 200
        here.client.cookies.set(COOKIE, session("another token"))


@asynchronous
async def test_a_cookie_of_another_token_opens_nothing(tmp_path: Path) -> None:
    async with site(tmp_path, token=TOKEN) as here:
        here.client.cookies.set(COOKIE, session("another token"))
        assert (await here.client.get("/api/runs")).status_code == 401


@asynchronous
async def test_static_files_need_no_token_but_lead_nowhere_else(tmp_path: Path) -> None:
    async with site(tmp_path, token=TOKEN) as here:
        assert (await here.client.get("/static/app.css")).status_code == 200
        for path in ("/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd"):
            assert (await here.client.get(path)).status_code in {401, 404, 303}


def test_secrets_are_compared_whole() -> None:
    assert same("abc", "abc")
    assert not same("abc", "abcd")
    assert not same("", "abc")
    assert not same("é", "e")
