"""A soak of the server: uploads while it and its workers are killed at random moments and its disk fills up.

    python -m tests.soak [--uploads 500] [--kills 12] [--worker-kills 40] [--fills 2] [--seed 1] [--disk FOLDER]

FOLDER should be a file system of its own of some hundred MiB (a tmpfs), which is then really filled to the last byte.
Without it nothing fills up but what the server is told of the free room. In the end every upload that was accepted
must be done or say why not, its report must be there, and nothing else may lie in the data folder.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from tests.web import Server, server, trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

MIB = 1 << 20
ORDERS = ("done",) * 12 + ("sleep 0.3", "sleep 0.1", "fail the trace has a cold", "crash", "empty", "garbage")


@dataclass(slots=True)
class Disk:
    """The disk that fills up: a real one, or the server's idea of it, told by a file."""

    place: Path
    is_real: bool

    @property
    def data(self) -> Path:
        return self.place / "data"

    @property
    def told(self) -> Path:
        return self.place / "free"

    def fill(self) -> None:
        """Leave no byte."""
        if not self.is_real:
            self.told.write_text("0")
            return
        with suppress(OSError), (self.place / "filler").open("wb", buffering=0) as filler:
            for size in (MIB, 4096):
                with suppress(OSError):
                    while filler.write(bytes(size)):
                        pass

    def clear(self) -> None:
        """Give the room back."""
        for name in ("filler", "free"):
            (self.place / name).unlink(missing_ok=True)


@dataclass(slots=True)
class Soak:
    """What was sent and what came of it."""

    disk: Disk
    chance: random.Random
    accepted: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    worst_start_s: float = 0.0

    def send(self, running: Server) -> None:
        """Upload one trace; what is answered with 202 is accepted, and the server's to lose."""
        content = trace(self.chance.choice(ORDERS), padding=self.chance.randrange(400_000))
        try:
            answer = httpx.put(f"{running.url}/api/runs?name=a.sqlite&label=soak", content=content, timeout=60)
        except httpx.HTTPError as error:
            self.answers[type(error).__name__] += 1
            return
        self.answers[str(answer.status_code)] += 1
        if answer.status_code == 202:
            self.accepted.add(answer.json()["id"])

    def kill_a_worker(self, running: Server) -> None:
        """Kill one of the server's jobs, if there is one."""
        children = list(_children(running.process.pid))
        if children:
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(children), signal.SIGKILL)

    def check(self, running: Server, seconds: float) -> None:
        """Hold what became of every accepted upload to what was promised."""
        deadline = time.monotonic() + seconds
        for run_id in self.accepted:
            said = running.settled(run_id, max(deadline - time.monotonic(), 1))
            self.states[said["state"]] += 1
            if said["state"] == "done":
                report = httpx.get(f"{running.url}/api/runs/{run_id}/report.json", timeout=60)
                assert report.status_code == 200, run_id
            else:
                assert said["state"] == "failed", said
                assert said["error"], said
                self.reasons[said["error"][:60]] += 1
        known = {place.name for place in (self.disk.data / "runs").iterdir()}
        assert known >= self.accepted
        unknown = len(known) - len(self.accepted)
        assert unknown <= sum(number for answer, number in self.answers.items() if not answer.isdecimal())
        assert list((self.disk.data / "incoming").iterdir()) == []
        assert httpx.get(f"{running.url}/healthz", timeout=60).json()["ok"]


def _children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            yield from (int(child) for child in task.read_text().split())


def soak(disk: Disk, *, uploads: int, kills: int, worker_kills: int, fills: int, seed: int = 1) -> Soak:
    """Send uploads while things break; raise an AssertionError where a promise is broken."""
    chance = random.Random(seed)
    done = Soak(disk, chance)
    moments = {
        "kill": set(chance.sample(range(uploads), kills)),
        "worker": set(chance.sample(range(uploads), worker_kills)),
    }
    step = uploads // (fills * 3 + 1)
    fill_at = {step * (1 + 3 * number) for number in range(fills)}
    clear_at = {at + step for at in fill_at}
    with ExitStack() as stack:
        running = stack.enter_context(_started(disk))
        for number in range(uploads):
            if number in fill_at:
                disk.fill()
            if number in clear_at:
                disk.clear()
            done.send(running)
            if number in moments["worker"]:
                done.kill_a_worker(running)
            if number in moments["kill"]:
                time.sleep(chance.random() * 0.3)
                running.kill()
                begun = time.monotonic()
                stack.close()
                running = stack.enter_context(_started(disk))
                done.worst_start_s = max(done.worst_start_s, time.monotonic() - begun)
        disk.clear()
        done.check(running, seconds=600)
    return done


def _started(disk: Disk) -> AbstractContextManager[Server]:
    told = None if disk.is_real else disk.told
    return server(disk.data, free=told, spare_bytes=16 * MIB, waiting=400)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, number in (("uploads", 500), ("kills", 12), ("worker-kills", 40), ("fills", 2), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--disk", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        disk = Disk(chosen.disk or Path(place), is_real=chosen.disk is not None)
        begun = time.monotonic()
        done = soak(
            disk,
            uploads=chosen.uploads,
            kills=chosen.kills,
            worker_kills=chosen.worker_kills,
            fills=chosen.fills,
            seed=chosen.seed,
        )
        shutil.rmtree(disk.data)
        print(f"{time.monotonic() - begun:.0f} s, slowest start {done.worst_start_s:.1f} s")  # noqa: T201
        for title, counted in (("answers", done.answers), ("accepted became", done.states), ("why", done.reasons)):
            print(title, dict(counted.most_common()))  # noqa: T201


if __name__ == "__main__":
    main()
