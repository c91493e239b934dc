"""The server under load and under clients that mean no good: memory, time, crashes, and bytes that lie."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import web
from tests.web import MAGIC, Server, server, trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

MIB = 1 << 20
SERVER_BYTES = 120 * MIB


def put(running: Server, content: bytes | Iterator[bytes], **query: str) -> httpx.Response:
    return web.put(f"{running.url}/api/runs", params={"name": "a.sqlite"} | query, content=content, timeout=120)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for clients that break the protocol: it keeps nothing of what they send, whoever comes next."""
    with server(tmp_path_factory.mktemp("strict")) as running:
        yield running


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that waits a second for a head."""
    with server(tmp_path_factory.mktemp("impatient"), header_s=1.0) as running:
        yield running


def runs(running: Server) -> int:
    total: int = web.get(f"{running.url}/api/runs", timeout=20).json()["total"]
    return total


def stored_bytes(root: Path) -> int:
    """Bytes of everything but the reserve, which is there to be given up when the disk is full."""
    files = (path for path in root.rglob("*") if path.is_file() and path.name != "reserve")
    return sum(path.stat().st_size for path in files)


def until_gone(root: Path, seconds: float = 10) -> None:
    """Wait until no upload is in flight."""
    deadline = time.monotonic() + seconds
    while any((root / "incoming").iterdir()):
        assert time.monotonic() < deadline, "an upload was left behind"
        time.sleep(0.05)


def test_ten_uploads_at_once_from_ten_clients_all_finish(tmp_path: Path, sample: Callable[[str], Path]) -> None:
    content = sample("null_gpu_1.graph").read_bytes()
    job_bytes = 1 << 30
    with server(tmp_path, real=True, job_bytes=job_bytes) as running:
        with ThreadPoolExecutor(10) as clients:
            answers = list(clients.map(lambda number: put(running, content, label=f"client {number}"), range(10)))
        assert [answer.status_code for answer in answers] == [202] * 10
        said = [running.settled(answer.json()["id"], seconds=240) for answer in answers]
        assert [one["state"] for one in said] == ["done"] * 10
        assert len({one["verdict"] for one in said}) == 1
        assert running.peak_bytes() < SERVER_BYTES


def test_an_upload_of_a_gibibyte_streams_with_flat_memory(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield trace("fail it was long")
        for _ in range(1024):
            yield bytes(MIB)

    with server(tmp_path) as running:
        assert put(running, trace()).status_code == 202
        before = running.peak_bytes()
        answer = put(running, pieces())
        assert answer.status_code == 202
        assert running.peak_bytes() - before < 16 * MIB
        assert running.peak_bytes() < SERVER_BYTES
        assert running.settled(answer.json()["id"])["error"] == "it was long"
        assert stored_bytes(tmp_path) < MIB


def test_reading_a_large_report_and_many_pages_keeps_memory_bounded(
    tmp_path: Path, sample: Callable[[str], Path]
) -> None:
    with server(tmp_path, real=True) as running:
        run_id = put(running, sample("nextn_before.node").read_bytes()).json()["id"]
        assert running.settled(run_id)["state"] == "done"
        files = [f"api/runs/{run_id}/{name}" for name in ("report.html", "report.json", "window")]
        urls = [f"{running.url}/{path}" for path in (f"runs/{run_id}", f"runs/{run_id}/timeline", *files)]
        with ThreadPoolExecutor(8) as clients:
            answers = list(clients.map(lambda url: web.get(url, timeout=60), urls * 12))
        assert {answer.status_code for answer in answers} == {200}
        assert all(int(answer.headers.get("content-length", 0)) < 2_000_000 for answer in answers)
        assert running.peak_bytes() < SERVER_BYTES


def test_a_server_killed_in_the_middle_of_a_job_does_it_after_its_restart(tmp_path: Path) -> None:
    with server(tmp_path, jobs=1) as running:
        done = put(running, trace(), name="done").json()["id"]
        assert running.settled(done)["state"] == "done"
        working = put(running, trace("sleep 3"), name="working").json()["id"]
        waiting = put(running, trace(), name="waiting").json()["id"]
        time.sleep(1)
        running.kill()
    with server(tmp_path, jobs=1) as running:
        assert [running.settled(one)["state"] for one in (done, working, waiting)] == ["done"] * 3
        for one in (done, working, waiting):
            assert web.get(f"{running.url}/api/runs/{one}/report.md", timeout=20).text == "report.md of None"


def test_a_job_that_takes_the_server_down_twice_is_not_tried_for_ever(tmp_path: Path) -> None:
    run_id = ""
    for _ in range(2):
        with server(tmp_path, jobs=1) as running:
            run_id = run_id or put(running, trace("sleep 60")).json()["id"]
            _until_running(running, run_id)
            running.kill()
    with server(tmp_path, jobs=1) as running:
        said = running.settled(run_id)
        assert said["state"] == "failed"
        assert "stopped twice" in said["error"]


def _until_running(running: Server, run_id: str) -> None:
    while web.get(f"{running.url}/api/runs/{run_id}", timeout=20).json()["state"] != "running":
        time.sleep(0.05)


def test_a_server_killed_in_the_middle_of_an_upload_keeps_what_was_finished_and_no_more(tmp_path: Path) -> None:
    with server(tmp_path) as running:
        finished = put(running, trace(), name="finished").json()["id"]
        running.settled(finished)
        with closing(socket.create_connection(("127.0.0.1", running.port))) as half:
            half.sendall(_head(running, 5 * MIB) + trace(padding=2 * MIB))
            time.sleep(0.5)
            assert any((tmp_path / "incoming").iterdir())
            running.kill()
    with server(tmp_path) as running:
        assert runs(running) == 1
        assert list((tmp_path / "incoming").iterdir()) == []
        assert running.settled(finished)["state"] == "done"


def test_a_killed_servers_worker_ends_with_it(tmp_path: Path) -> None:
    with server(tmp_path, real=True, jobs=1) as running:
        before = _descendants(running.process.pid)
        put(running, MAGIC + bytes(50 * MIB))
        deadline = time.monotonic() + 10
        while len(workers := _descendants(running.process.pid) - before) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(workers) >= 2, "a process, and its fork that does the job"
        running.kill()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _descendants(pid: int) -> set[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = {int(child) for task in tasks for child in task.read_text().split()}
    return children.union(*map(_descendants, children))


def _head(running: Server, length: int) -> bytes:
    lines = ("PUT /api/runs?name=a HTTP/1.1", f"Host: 127.0.0.1:{running.port}", f"Content-Length: {length}", "", "")
    return "\r\n".join(lines).encode()


def test_a_body_shorter_than_its_length_is_never_a_run(strict: Server) -> None:
    with closing(socket.create_connection(("127.0.0.1", strict.port))) as client:
        client.sendall(_head(strict, 9_000_000) + trace(padding=1000))
        client.shutdown(socket.SHUT_WR)
        client.settimeout(10)
        client.recv(1000)
    until_gone(strict.root)
    assert runs(strict) == 0


def test_bytes_beyond_the_length_are_not_part_of_the_upload(tmp_path: Path) -> None:
    with server(tmp_path, jobs=1) as running:
        content = trace("sleep 30")
        with closing(socket.create_connection(("127.0.0.1", running.port))) as client:
            client.sendall(_head(running, len(content)) + content + b"GARBAGE" * 1000)
            client.settimeout(10)
            answer = client.recv(1000)
        assert b" 202 " in answer
        assert runs(running) == 1
        (upload,) = (tmp_path / "runs").glob("*/upload")
        assert upload.read_bytes() == content


@pytest.mark.parametrize("length", ["-1", "abc", "1, 2", "99999999999999999999999"])
def test_a_length_that_is_none_is_refused(strict: Server, length: str) -> None:
    with closing(socket.create_connection(("127.0.0.1", strict.port))) as client:
        head = f"PUT /api/runs?name=a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n"
        client.sendall(head.encode() + trace())
        client.settimeout(10)
        answer = client.recv(1000)
    assert b" 400 " in answer or b" 413 " in answer
    assert runs(strict) == 0


def test_both_a_length_and_chunks_do_not_smuggle_a_second_request(strict: Server) -> None:
    with closing(socket.create_connection(("127.0.0.1", strict.port))) as client:
        smuggled = b"0\r\n\r\nDELETE /api/runs/x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        lengths = f"Content-Length: {len(smuggled)}\r\nTransfer-Encoding: chunked"
        head = f"PUT /api/runs?name=a HTTP/1.1\r\nHost: 127.0.0.1\r\n{lengths}\r\n\r\n"
        client.sendall(head.encode() + smuggled)
        client.settimeout(3)
        answer = b""
        while piece := _received(client):
            answer += piece
    assert answer.count(b"HTTP/1.1") <= 2
    assert b" 204 " not in answer
    assert runs(strict) == 0


def _received(client: socket.socket) -> bytes:
    try:
        return client.recv(4096)
    except TimeoutError:
        return b""


def test_a_head_that_drips_is_hung_up_on(impatient: Server) -> None:
    clients = [socket.create_connection(("127.0.0.1", impatient.port)) for _ in range(30)]
    begun = time.monotonic()
    for client in clients:
        client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    while time.monotonic() < begun + 0.8:
        for number, client in enumerate(clients):
            client.sendall(f"X-{number}: y\r\n".encode())
        assert web.get(f"{impatient.url}/api/runs", timeout=20).status_code == 200
        time.sleep(0.2)
    for client in clients:
        with closing(client):
            client.settimeout(10)
            assert _hung_up(client)
    assert time.monotonic() - begun < 10


def test_a_second_head_that_drips_is_hung_up_on_too(impatient: Server) -> None:
    with closing(socket.create_connection(("127.0.0.1", impatient.port))) as client:
        client.sendall(b"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        client.settimeout(10)
        assert b" 200 " in client.recv(65536)
        client.sendall(b"GET /api/runs HT")
        assert _hung_up(client)


def test_a_body_that_stalls_is_hung_up_on(tmp_path: Path) -> None:
    with server(tmp_path, stall_s=0.5) as running:
        with closing(socket.create_connection(("127.0.0.1", running.port))) as client:
            client.sendall(_head(running, 1000) + MAGIC)
            client.settimeout(10)
            assert b" 408 " in client.recv(65536)
        until_gone(tmp_path)
        assert runs(running) == 0


def test_a_long_upload_is_not_mistaken_for_a_slow_head(impatient: Server) -> None:
    def pieces() -> Iterator[bytes]:
        yield trace()
        for _ in range(12):
            time.sleep(0.2)
            yield bytes(65536)

    assert put(impatient, pieces()).status_code == 202


@contextmanager
def connected(running: Server, number: int, said: bytes = b"") -> Iterator[list[socket.socket]]:
    """Many clients that said something and then no more."""
    with ExitStack() as held:
        clients = [
            held.enter_context(closing(socket.create_connection(("127.0.0.1", running.port)))) for _ in range(number)
        ]
        for client in clients:
            client.sendall(said)
            client.settimeout(10)
        until(lambda: _unread(running.port) == 0)
        time.sleep(0.3)
        yield clients


def _unread(port: int) -> int:
    """How many bytes clients have sent to a port that its server has not taken yet."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    connections = [row for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"]
    return sum(int(row[4].partition(":")[2], 16) for row in connections)


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_silent_connections_give_way_to_somebody_who_asks(tmp_path: Path) -> None:
    with (
        server(tmp_path, connections=20, header_s=20.0) as running,
        connected(running, 30),
        connected(running, 30, b"GET / HTTP/1.1\r\n"),
    ):
        for _ in range(3):
            assert web.get(f"{running.url}/api/runs", timeout=20).status_code == 200


def test_where_every_connection_is_at_work_the_next_is_turned_away(tmp_path: Path) -> None:
    def turned_away() -> bool:
        return bool(web.get(f"{running.url}/api/runs", timeout=20).status_code == 503)

    with server(tmp_path, connections=10, stall_s=20.0) as running:
        with connected(running, 10, _head(running, 1000) + MAGIC):
            assert turned_away()
        until(lambda: not turned_away())


def test_nobody_without_the_token_shuts_out_who_has_it(tmp_path: Path) -> None:
    token = "a token of some length"  # noqa: S105 - made up
    headers = {"authorization": f"Bearer {token}"}
    with server(tmp_path, token=token, connections=60, form_s=2.0) as running:
        head = f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nContent-Length: 4000\r\n\r\ntoken=x"
        with connected(running, 80, head.encode()), connected(running, 80, head.encode()) as clients:
            for _ in range(3):
                assert web.get(f"{running.url}/api/runs", headers=headers, timeout=20).status_code == 200
            begun = time.monotonic()
            assert all(_hung_up(client) for client in clients)
            assert time.monotonic() - begun < 8


@pytest.mark.parametrize("limit", ["disk_bytes", "upload_bytes", "no room at all"])
def test_a_refused_upload_shows_its_status_however_its_client_sends(tmp_path: Path, limit: str) -> None:
    status = 413 if limit == "upload_bytes" else 507
    limits: dict[str, Any] = {"spare_bytes": 1 << 60} if limit == "no room at all" else {limit: 2 * MIB}

    def pieces() -> Iterator[bytes]:
        yield trace()
        for _ in range(64):
            yield bytes(MIB)

    with server(tmp_path, **limits) as running:
        for _ in range(3):
            assert put(running, pieces()).status_code == status
            assert put(running, trace(padding=64 * MIB)).status_code == status
        assert stored_bytes(tmp_path) < 8 * MIB


def test_a_server_killed_while_it_compares_starts_again(tmp_path: Path) -> None:
    with server(tmp_path, jobs=1) as running:
        ids = [put(running, trace()).json()["id"] for _ in range(2)]
        for one in ids:
            running.settled(one)
        slow = ThreadPoolExecutor(1).submit(web.get, f"{running.url}/diff?base={ids[0]}&head={ids[1]}", timeout=20)
        deadline = time.monotonic() + 10
        while not any((tmp_path / "incoming").iterdir()) and time.monotonic() < deadline:
            time.sleep(0.001)
        running.kill()
        assert slow.exception() is not None
    (tmp_path / "incoming" / "left").mkdir(exist_ok=True)
    with server(tmp_path, jobs=1) as running:
        assert runs(running) == 2
        assert list((tmp_path / "incoming").iterdir()) == []


def _hung_up(client: socket.socket) -> bool:
    """Read until the server closes; a timeout means that it doesn't."""
    try:
        while client.recv(4096):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True
