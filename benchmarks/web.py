"""How the server answers with many runs stored, beside a bare route that returns the same bytes.

    python -m benchmarks.web [--runs 1000] [--seconds 3]

Both are asked in the same process, in turns, by one client over loopback, and by time of the processor. A ratio of
0.25 means a quarter of the bare rate. "kept" asks again and again, "noted" each time after the next run got another
note, "moved" after it got another label, by which it comes to a trend or leaves it as an upload does. Changes go
through the API and aren't counted. "mixed" is a busy team: every tenth request comes right after a change, every fourth
of which is a move.
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

    Seconds are those of the processor, for client and server together: what else the machine does makes little
    difference. What is done `before` each request isn't counted, but leaves cold caches; so the bare route is asked
    behind the same.
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
    """Somebody who edits runs, the newest 200 in turn, each time to something else."""

    def __init__(self, port: int) -> None:
        """Find the runs."""
        self._client = HTTPConnection("127.0.0.1", port)
        self._asked = self._edits = 0
        self._client.request("GET", "/api/runs", headers={"host": "127.0.0.1"})
        self._runs = json.loads(self._client.getresponse().read())["runs"]
        self._client.close()

    def note(self) -> None:
        """Change the note of the next run."""
        self._edit({"note": f"edit {self._edits}"})

    def move(self) -> None:
        """Give the next run the other label."""
        run = self._runs[self._edits % len(self._runs)]
        run["label"] = "nightly-1" if run["label"] == "nightly-0" else "nightly-0"
        self._edit({"label": run["label"]})

    def seldom(self) -> None:
        """Change something before every tenth request: three notes, then a label."""
        self._asked += 1
        if self._asked % 40 == 0:
            self.move()
        elif self._asked % 10 == 0:
            self.note()

    def _edit(self, changed: dict[str, str]) -> None:
        run = self._runs[self._edits % len(self._runs)]
        self._edits += 1
        self._client.request("PATCH", f"/api/runs/{run['id']}", json.dumps(changed), {"host": "127.0.0.1"})
        answer = self._client.getresponse()
        answer.read()
        self._client.close()
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
        port = served(lambda: create_app(Service(Path(root), Limits())))
        other = served(lambda: Starlette(routes=[Route("/", bare)]))
        editor = Editor(port)
        ways = {"kept": lambda: None, "mixed": editor.seldom, "noted": editor.note, "moved": editor.move}
        print(f"{'requests a second':28} {'bytes':>8}", *(f"{'bare':>7} {way:>6} {'ratio':>5}" for way in ways))
        for path in PATHS:
            _, bodies["now"] = rate(port, path, 0.1)
            told = []
            for before in ways.values():
                plain, ours = (rate(*asked, chosen.seconds, before)[0] for asked in ((other, "/"), (port, path)))
                told.append(f"{plain:7.0f} {ours:6.0f} {ours / plain:5.2f}")
            print(f"{path:28} {len(gzip.decompress(bodies['now'])):8,}", *told, flush=True)


if __name__ == "__main__":
    main()
