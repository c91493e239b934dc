"""How the server answers with many runs stored, beside a bare route that returns the same bytes.

    python -m benchmarks.web [--runs 1000] [--seconds 3]

Both are asked in the same process, in turns, by one client over loopback, and by time of the processor. A ratio of
0.25 means a quarter of the bare rate. "kept" asks again and again, "noted" after a change of a run's note, "moved"
after its label changed too, by which it comes to a trend or leaves it, as an upload would; each change goes through the
API and isn't counted. "mixed" is a busy team: every tenth request comes right after such a change.
"""

from __future__ import annotations

import argparse
import gzip
import json
import socket
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from bubblefinder.web.app import create_app
from bubblefinder.web.limits import Limits
from bubblefinder.web.service import Service
from bubblefinder.web.shelf import StoredRun
from bubblefinder.web.store import Store, new_id
from bubblefinder.web.trend import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

PATHS = (
    "/",
    "/?search=nightly+h200",
    "/?sort=step",
    "/trend?label=nightly-0",
    "/api/runs",
    "/api/trend?label=nightly-0",
)


def fill(root: Path, runs: int) -> None:
    """Store finished runs, half of them with one label."""
    store = Store(root / "runs.db")
    for number in range(runs):
        metrics = dict.fromkeys([*METRICS, *(f"kernel.{one}" for one in range(100))], 7e6 + number % 17 * 1e4)
        store.add(
            StoredRun(
                id=new_id(), name=f"decode-{number}.sqlite", label=f"nightly-{number % 2}", commit=f"{number:040x}",
                state="done", gpu="NVIDIA H200", nsys="2025.3.2.367", step_p50_ns=7e6 + number % 17 * 1e4,
                bubble_share=0.28, verdict="The GPU idles 28.3 % of the decode step", metrics=metrics,
            )
        )  # fmt: skip
    store.close()


def served(make: Callable[[], ASGIApp]) -> int:
    """Serve an application from a thread of this process, which also makes it, and return its port."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()

    def serve() -> None:
        uvicorn.Server(uvicorn.Config(make(), log_level="warning", access_log=False)).run(sockets=[listener])

    threading.Thread(target=serve, daemon=True).start()
    return int(listener.getsockname()[1])


def rate(port: int, path: str, seconds: float, before: Callable[[], None] = lambda: None) -> tuple[float, bytes]:
    """Return requests a second of one client that keeps its connection, and the last body as sent.

    Seconds are those of the processor, for client and server together: what else the machine does makes no difference.
    What is done `before` each request isn't counted.
    """
    client = HTTPConnection("127.0.0.1", port)
    asked, spent, body, ends = 0, 0.0, b"", time.monotonic() + seconds
    while time.monotonic() < ends:
        before()
        begun = time.process_time()
        client.request("GET", path, headers={"accept-encoding": "gzip", "host": "127.0.0.1"})
        answer = client.getresponse()
        body = answer.read()
        spent += time.process_time() - begun
        assert answer.status == 200, (path, answer.status)
        asked += 1
    client.close()
    return asked / spent, body


class Editor:
    """Somebody who edits the newest run, each time to something else."""

    def __init__(self, port: int) -> None:
        """Find the newest run."""
        self._client = HTTPConnection("127.0.0.1", port)
        self._asked = self._edits = 0
        self._client.request("GET", "/api/runs", headers={"host": "127.0.0.1"})
        self._place = "/api/runs/" + json.loads(self._client.getresponse().read())["runs"][0]["id"]

    def note(self) -> None:
        """Change the note."""
        self._edit(note=f"edit {self._edits}", label="nightly-0")

    def move(self) -> None:
        """Change the label too, to another and back."""
        self._edit(note=f"edit {self._edits}", label=f"nightly-{self._edits % 2}")

    def seldom(self) -> None:
        """Change the label before every tenth request."""
        self._asked += 1
        if self._asked % 10 == 0:
            self.move()

    def _edit(self, **changed: str) -> None:
        self._edits += 1
        self._client.request("PATCH", self._place, json.dumps(changed), {"host": "127.0.0.1"})
        answer = self._client.getresponse()
        answer.read()
        assert answer.status == 200, answer.status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=3)
    chosen = parser.parse_args()
    bodies: dict[str, bytes] = {}

    async def bare(_request: object) -> Response:
        return Response(bodies["now"], headers={"content-encoding": "gzip"})

    with tempfile.TemporaryDirectory() as root:
        fill(Path(root), chosen.runs)
        services: list[Service] = []

        def ours() -> ASGIApp:
            services.append(Service(Path(root), Limits()))
            return create_app(services[0])

        port = served(lambda: create_app(Service(Path(root), Limits())))
        other = served(lambda: Starlette(routes=[Route("/", bare)]))
        editor = Editor(port)
        ways = {"kept": lambda: None, "mixed": editor.seldom, "noted": editor.note, "moved": editor.move}
        print(f"{'path':28} {'bytes':>8} {'bare/s':>7}", *(f"{way + '/s':>8} {'ratio':>5}" for way in ways))
        for path in PATHS:
            _, bodies["now"] = rate(port, path, 0.1)
            plain, _ = rate(other, "/", chosen.seconds)
            rates = [rate(port, path, chosen.seconds, before)[0] for before in ways.values()]
            size = len(gzip.decompress(bodies["now"]))
            told = (f"{one:8.0f} {one / plain:5.2f}" for one in rates)
            print(f"{path:28} {size:8,} {plain:7.0f}", *told, flush=True)


if __name__ == "__main__":
    main()
