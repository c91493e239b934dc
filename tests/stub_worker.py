"""Speaks the worker's protocol and does what the first line of the upload says, so that tests decide how jobs end."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MAGIC = b"SQLite format 3\0"


def main() -> int:
    """Do one job."""
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=die_with_the_server, daemon=True).start()
    if "comparison" in order:
        return compare(Path(order["comparison"]["out"]))
    job = order["analysis"]
    with Path(job["upload"]).open("rb") as upload:
        word, _, argument = upload.readline()[len(MAGIC) :].decode().strip().partition(" ")
    say({"stage": "load"})
    code = ENDS[word](argument)
    if code is not None:
        return code
    write_report(Path(job["scratch"]) / "finished", job)
    found: dict[str, Any] = {"verdict": f"verdict on {job['name']}", "gpu": "H200", "nsys": "2025.3"}
    found |= {"step_p50_ns": 7e6, "bubble_share": 0.25, "metrics": {"step.duration.p50": 7e6}}
    say({"done": found})
    return 0


def die_with_the_server() -> None:
    """End when stdin does."""
    while os.read(0, 4096):
        pass
    os._exit(70)


def say(what: Any) -> None:
    """Say one line of JSON."""
    print(json.dumps(what), flush=True)  # noqa: T201 - the protocol


def compare(out: Path) -> int:
    """Write files as a comparison does, which takes a moment."""
    time.sleep(0.3)
    for name in ("body.html", "diff.json", "diff.html", "diff.md"):
        (out / name).write_text(f"{name} of a comparison")
    say({"done": {}})
    return 0


def eat(argument: str) -> None:
    """Take memory and use it."""
    held = bytearray(int(argument))
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(30)


def told(what: Any, code: int) -> int:
    """Say something and end."""
    say(what)
    return code


ENDS: dict[str, Callable[[str], int | None]] = {
    "done": lambda _: None,
    "sleep": lambda argument: time.sleep(float(argument)),
    "eat": eat,
    "crash": lambda _: os.kill(os.getpid(), signal.SIGSEGV),
    "garbage": lambda _: told("this is no object", 1),
    "number": lambda _: told(17, 1),
    "fail": lambda argument: told({"error": argument, "hint": "try another"}, 3),
    "empty": lambda _: told({"done": {}}, 0),
    "full": lambda _: told({"disk": True}, 3),
    "broke": lambda _: told({"memory": True}, 3),
}


def write_report(folder: Path, job: dict[str, Any]) -> None:
    """Write files as a report does."""
    folder.mkdir(parents=True)
    for name in ("report.json", "report.html", "report.md", "report.perfetto.json.gz"):
        (folder / name).write_text(f"{name} of {job['label']}")
    (folder / "body.html").write_text("<main><h1 id='verdict'>a body</h1></main>")


if __name__ == "__main__":
    sys.exit(main())
