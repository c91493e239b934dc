"""A web server for tests: in this process over ASGI, or as a process of its own on a free port, see `served.py`.

Jobs are done by `stub_worker.py`, unless a test asks for the real worker: what it does is said in the upload itself.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from bubblefinder.web.app import create_app
from bubblefinder.web.limits import Limits
from bubblefinder.web.process import WORKER
from bubblefinder.web.service import Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

MAGIC = b"SQLite format 3\0"
STUB = (sys.executable, str(Path(__file__).with_name("stub_worker.py")))
SERVED = str(Path(__file__).with_name("served.py"))
SERVED_IN_S = 90
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""What httpx would read out of the system's certificates for each request, in 23 ms; servers here speak plain HTTP."""

get, put, post, request = (
    functools.partial(ask, verify=NO_TLS) for ask in (httpx.get, httpx.put, httpx.post, httpx.request)
)


def trace(order: str = "done", padding: int = 0) -> bytes:
    """An upload that looks like a trace and tells the stub what to do."""
    return MAGIC + order.encode() + b"\n" + bytes(padding)


def asynchronous(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test in a loop of its own."""

    @functools.wraps(test)
    def synchronous(*args: Any, **kwargs: Any) -> None:
        asyncio.run(_bounded(test(*args, **kwargs)))

    return synchronous


async def _bounded(test: Awaitable[None]) -> None:
    async with asyncio.timeout(60):
        await test


@dataclass(frozen=True, slots=True)
class Site:
    """An application in this process and a client that talks to it."""

    client: httpx.AsyncClient
    service: Service

    async def put(self, content: bytes | None = None, **query: str) -> str:
        """Upload a trace and return the id of its run."""
        query = {"name": "some.sqlite"} | query
        answer = await self.client.put("/api/runs", params=query, content=trace() if content is None else content)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    async def settled(self, run_id: str) -> dict[str, Any]:
        """Wait until a run is no longer queued or running and return what the API says of it."""
        while True:
            said: dict[str, Any] = (await self.client.get(f"/api/runs/{run_id}")).json()
            if said["state"] not in {"queued", "running"}:
                return said
            await asyncio.sleep(0.02)

    async def until(self, run_id: str, state: str) -> None:
        """Wait for a state."""
        while (await self.client.get(f"/api/runs/{run_id}")).json()["state"] != state:
            await asyncio.sleep(0.01)


@asynccontextmanager
async def site(
    root: Path, limits: Limits | None = None, *, token: str | None = None, worker: tuple[str, ...] = STUB
) -> AsyncIterator[Site]:
    """An application that runs in this process until the block ends."""
    service = Service(root, limits or Limits(), token=token, worker=worker)
    app = create_app(service)
    transport = httpx.ASGITransport(app)
    async with service.lifespan(app), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield Site(client, service)


@dataclass(slots=True)
class Server:
    """A server in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    root: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def peak_bytes(self) -> int:
        """The most memory it ever had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def settled(self, run_id: str, seconds: float = 60) -> dict[str, Any]:
        """Wait until a run is settled and return what the API says of it."""
        said: dict[str, Any] = {}
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            said = get(f"{self.url}/api/runs/{run_id}", timeout=20).json()
            if said["state"] not in {"queued", "running"}:
                return said
            time.sleep(0.1)
        raise AssertionError(f"the run is not settled: {said}")


@contextmanager
def server(
    root: Path, *, real: bool = False, token: str | None = None, free: Path | None = None,
    proxies: Sequence[str] = (), **limits: float,
) -> Iterator[Server]:  # fmt: skip
    """A server process on a free port, gone when the block ends; `free` is a file that tells it of free bytes."""
    port = free_port()
    order = {
        "root": str(root),
        "port": port,
        "limits": limits,
        "token": token,
        "free": str(free) if free else None,
        "proxies": list(proxies),
        "worker": list(WORKER if real else STUB),
    }
    places = [str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    process = subprocess.Popen([sys.executable, SERVED, json.dumps(order)], env=environment)
    try:
        wait_for(port)
        yield Server(process, port, root)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> float:
    """Wait until something listens on a port; return the seconds that took."""
    begun = time.monotonic()
    while time.monotonic() < begun + SERVED_IN_S:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return time.monotonic() - begun
        time.sleep(0.01)
    raise AssertionError(f"nothing listens on port {port}")
