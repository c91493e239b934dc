"""Speaks the worker's protocol and does what the first line of the upload says, so that tests decide how jobs end."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

MAGIC = b"SQLite format 3\0"


def main() -> int:
    """What a worker does, told by the upload's second line: see the branches."""
    order = json.loads(sys.stdin.readline())
    say = functools.partial(print, flush=True)
    if "comparison" in order:
        for name in ("body.html", "style.css", "diff.json", "diff.html", "diff.md"):
            (Path(order["comparison"]["out"]) / name).write_text(f"{name} of a comparison")
        say(json.dumps({"done": {}}))
        return 0
    job = order["analysis"]
    with Path(job["upload"]).open("rb") as upload:
        word, _, argument = upload.readline()[len(MAGIC) :].decode().strip().partition(" ")
    say(json.dumps({"stage": "load"}))
    if word == "sleep":
        time.sleep(float(argument))
    elif word == "eat":
        held = bytearray(int(argument))
        held[::4096] = b"x" * len(held[::4096])
        time.sleep(30)
    elif word == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif word in {"garbage", "number"}:
        say("this is not JSON" if word == "garbage" else "17")
        return 1
    elif word == "fail":
        say(json.dumps({"error": argument, "hint": "try another"}))
        return 3
    elif word == "broke":
        say(json.dumps({"memory": True}))
        return 3
    _write_stub_report(Path(job["scratch"]) / "finished", job)
    found = {
        "verdict": f"verdict on {job['name']}",
        "gpu": "H200",
        "nsys": "2025.3",
        "step_p50_ns": 7e6,
        "bubble_share": 0.25,
    }
    say(json.dumps({"done": found | {"metrics": {"step.duration.p50": 7e6}}}))
    return 0


def _write_stub_report(folder: Path, job: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    for name in ("report.json", "report.html", "report.md", "report.perfetto.json.gz"):
        (folder / name).write_text(f"{name} of {job['label']}")
    (folder / "body.html").write_text("<main><h1 id='verdict'>a body</h1></main>")


if __name__ == "__main__":
    sys.exit(main())
