"""Behind a reverse proxy that takes every request and every answer whole before it passes it on."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import httpx
import pytest

from tests import web
from tests.web import Server, server, trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "a token of some length"  # noqa: S105 - made up


@contextmanager
def proxied(running: Server, client: str) -> Iterator[str]:
    """A proxy that buffers, speaks HTTPS for others and says on whose behalf it asks."""

    class Proxy(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            length = int(self.headers.get("content-length", 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
            said = {"X-Forwarded-Proto": "https", "X-Forwarded-For": client}
            answer = web.request(
                self.command,
                running.url + self.path,
                headers=headers | said,
                content=self.rfile.read(length),
                timeout=60,
            )
            self.send_response(answer.status_code)
            for name, value in answer.headers.multi_items():
                if name not in {"transfer-encoding", "connection", "content-encoding", "content-length"}:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_PUT = do_POST = do_DELETE = _pass_on  # noqa: N815 - names of the library

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{proxy.server_port}"
    proxy.shutdown()
    proxy.server_close()


def test_uploads_progress_and_reports_pass_a_proxy_that_buffers(tmp_path: Path) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    with (
        server(tmp_path, token=TOKEN, proxies=["127.0.0.1"]) as running,
        proxied(running, "10.1.1.1") as url,
        httpx.Client(base_url=url, headers=headers, timeout=60, verify=web.NO_TLS) as client,
    ):
        content = trace("sleep 1", padding=3_000_000)
        run_id = client.put("/api/runs?name=a.sqlite", content=content).json()["id"]
        states: set[str] = set()
        while not states & {"done", "failed"}:
            states.add(client.get(f"/api/runs/{run_id}").json()["state"])
        assert "done" in states
        assert client.get(f"/api/runs/{run_id}/report.md").text == "report.md of None"
        assert client.put("/api/runs?name=a", content=b"no trace").status_code == 415


@pytest.mark.parametrize(("trusted", "is_secure"), [(["127.0.0.1"], True), (["10.9.9.9"], False), ([], False)])
def test_a_proxys_word_is_taken_only_if_it_is_named(tmp_path: Path, trusted: list[str], is_secure: bool) -> None:
    with server(tmp_path, token=TOKEN, proxies=trusted) as running:
        with proxied(running, "10.1.1.1") as url:
            cookie = web.post(f"{url}/login", data={"token": TOKEN}, timeout=60).headers["set-cookie"]
            assert ("Secure" in cookie) == is_secure
            for _ in range(30):
                web.post(f"{url}/login", data={"token": "0penSesame"}, timeout=60)
        with proxied(running, "10.2.2.2") as other:
            answer = web.post(f"{other}/login", data={"token": TOKEN}, timeout=60)
            assert answer.status_code == (303 if is_secure else 429)
