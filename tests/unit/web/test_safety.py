from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import UsageError
from bubblefinder.web.guesses import BURST
from bubblefinder.web.limits import LEAST_TOKEN, Limits, checked_token
from bubblefinder.web.render import COOKIE
from bubblefinder.web.safety import same, session
from bubblefinder.web.service import Service
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
async def test_no_script_runs_but_the_servers_own_files(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        answer = await here.client.get("/")
        assert "script-src 'self';" in answer.headers["content-security-policy"]
        assert re.findall(r"<script[^>]*>", answer.text) == ['<script src="/static/upload.js">']


@asynchronous
async def test_styles_in_a_page_go_by_a_nonce_that_is_never_the_same(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put()
        await here.settled(run_id)
        nonces = set()
        for _ in range(3):
            answer = await here.client.get(f"/runs/{run_id}")
            (nonce,) = re.findall(r"style-src 'self' 'nonce-([^']+)'", answer.headers["content-security-policy"])
            assert f'nonce="{nonce}"' in answer.text
            nonces.add(nonce)
        assert len(nonces) == 3


@asynchronous
async def test_no_answer_that_a_sender_can_word_is_taken_for_a_script(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        run_id = await here.put()
        await here.settled(run_id)
        for name in ("report.json", "report.html", "report.md", "report.perfetto.json.gz"):
            answer = await here.client.get(f"/api/runs/{run_id}/{name}")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "javascript" not in answer.headers["content-type"]


@asynchronous
async def test_pages_with_runs_are_not_cached(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        assert (await here.client.get("/")).headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "",
        "localhost.evil",
        "127.0.0.1:80@evil.com",
        "127.0.0.1:8401, evil",
        "127.0.0.1:",
        "127.0.0.1:80:80",
        "localhost.",
        "127.0.0.1\n",
        "[::1",
        "localhost:x",
    ],
)
@asynchronous
async def test_a_foreign_name_that_leads_here_is_refused(tmp_path: Path, host: str) -> None:
    async with site(tmp_path) as here:
        assert (await here.client.get("/api/runs", headers={"host": host})).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8350", "localhost", "LOCALHOST:8401", "LocalHost", "[::1]:8350", "[::1]"])
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
        wrong = await here.client.post("/login", data={"token": "0penSesame"})
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
        for name in ("app.css", "report.css", "icon.svg"):
            assert (await here.client.get(f"/static/{name}")).status_code == 200
        for name in ("plotly.js", "report.js", "timeline.js"):
            assert (await here.client.get(f"/static/{name}")).status_code == 303
        for path in ("/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd"):
            assert (await here.client.get(path)).status_code in {401, 404, 303}


def test_secrets_are_compared_whole() -> None:
    assert same("abc", "abc")
    assert not same("abc", "abcd")
    assert not same("", "abc")
    assert not same("é", "e")


@pytest.mark.parametrize(
    "token",
    ["", "   ", "a", "x" * (LEAST_TOKEN - 1), "é" * 20, "tab\tand some more letters", " led by a space and long"],
)
def test_a_token_that_keeps_nobody_out_or_fits_no_header_is_refused(tmp_path: Path, token: str) -> None:
    for check in (checked_token, lambda given: Service(tmp_path, Limits(), token=given)):
        with pytest.raises(UsageError) as refused:
            check(token)
        assert "openssl rand" in refused.value.hint
    assert checked_token(None) is None
    assert checked_token("x" * LEAST_TOKEN) == "x" * LEAST_TOKEN


@asynchronous
async def test_guesses_are_slowed_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with site(tmp_path, token=TOKEN) as here:
        for _ in range(BURST // 2):
            assert (await here.client.post("/login", data={"token": "0penSesame"})).status_code == 401
            refused = await here.client.get("/api/runs", headers={"authorization": "Bearer 0penSesame"})
            assert refused.status_code == 401
        assert caplog.text.count("a wrong token came from 127.0.0.1") == BURST
        assert "0penSesame" not in caplog.text
        assert (await here.client.post("/login", data={"token": TOKEN})).status_code == 429
        right = {"authorization": f"Bearer {TOKEN}"}
        assert (await here.client.get("/api/runs", headers=right)).status_code == 429
        here.client.cookies.set(COOKIE, session(TOKEN))
        assert (await here.client.get("/api/runs")).status_code == 200


@asynchronous
async def test_signing_out_takes_the_cookie_back(tmp_path: Path) -> None:
    async with site(tmp_path, token=TOKEN) as here:
        await here.client.post("/login", data={"token": TOKEN})
        assert "Sign out" in (await here.client.get("/", headers={"accept": "text/html"})).text
        assert (await here.client.post("/logout", headers={"origin": "https://evil.example"})).status_code == 403
        gone = await here.client.post("/logout")
        assert (gone.status_code, gone.headers["location"]) == (303, "/login")
        assert (await here.client.get("/api/runs")).status_code == 401


@asynchronous
async def test_the_cookie_is_for_https_alone_where_that_is_spoken(tmp_path: Path) -> None:
    async with site(tmp_path, token=TOKEN) as here:
        for url, secure in (("http://127.0.0.1/login", False), ("https://gpu.lan/login", True)):
            cookie = (await here.client.post(url, data={"token": TOKEN})).headers["set-cookie"]
            assert ("Secure" in cookie) == secure
