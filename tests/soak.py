"""A soak of the server: uploads while it and its workers are killed at random moments and its disk fills up.

    python -m tests.soak [--uploads 500] [--kills 25] [--worker-kills 60] [--fills 2] [--seed 1] [--disk DISK] [--real]

DISK should be a file system of its own of some hundred MiB (a tmpfs), which is then really filled to the last byte.
Without it nothing fills up but what the server is told of the free room. With `--real` captures are sent to the real
worker; without it a stand-in does as its upload says. In the end every upload that was accepted must be done or say why
not, its report must be there and its own, and nothing else may lie in the data folder.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from bubblefinder.trace.drawn import draw
from tests import web
from tests.exports import export
from tests.web import Server, server, trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

MIB = 1 << 20
ORDERS = ("done",) * 12 + ("sleep 0.3", "sleep 0.1", "fail the trace has a cold", "crash", "empty", "garbage")
PICTURE = f"""
api      | {"GG...C.........." * 6}
gpu0 s7  | {"..aaabb........." * 6}
gpu0 s14 | {"........C......." * 6}
G = graph 5 a b
C = copy DtoH 8 pageable via cudaMemcpy
"""
WITHIN_S = 0.4
PAUSE_S = 1.2


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
    contents: list[tuple[str, bytes]]
    accepted: dict[str, tuple[str, str]] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    worst_start_s: float = 0.0

    def send(self, running: Server) -> None:
        """Upload one trace; what is answered with 202 is accepted, and the server's to lose."""
        kind, content = self.chance.choice(self.contents)
        label = f"soak-{sum(self.answers.values())}"
        query = {"name": "a.sqlite", "label": label}
        try:
            answer = web.put(f"{running.url}/api/runs", params=query, content=content, timeout=60)
        except httpx.HTTPError as error:
            self.answers[type(error).__name__] += 1
            return
        self.answers[str(answer.status_code)] += 1
        if answer.status_code == 202:
            self.accepted[answer.json()["id"]] = kind, label

    def kill_a_worker(self, running: Server) -> None:
        """Kill one of the server's jobs, if there is one."""
        children = list(children_of(running.process.pid))
        if children:
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(children), signal.SIGKILL)

    def check(self, running: Server, seconds: float) -> None:
        """Hold what became of every accepted upload to what was promised."""
        deadline = time.monotonic() + seconds
        for run_id, (kind, label) in self.accepted.items():
            said = running.settled(run_id, max(deadline - time.monotonic(), 1))
            self.states[said["state"]] += 1
            assert said["label"] == label, said
            if said["state"] == "done":
                report = web.get(f"{running.url}/api/runs/{run_id}/report.json", timeout=60)
                assert report.status_code == 200, run_id
                assert label in report.text, run_id
            else:
                assert said["state"] == "failed", said
                assert said["error"], said
                self.reasons[f"{kind}: {said['error']}"] += 1
        known = {place.name for place in (self.disk.data / "runs").iterdir()}
        assert known >= self.accepted.keys()
        unknown = len(known) - len(self.accepted)
        assert unknown <= sum(number for answer, number in self.answers.items() if not answer.isdecimal())
        assert list((self.disk.data / "incoming").iterdir()) == []
        assert web.get(f"{running.url}/healthz", timeout=60).json()["ok"]


def children_of(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            yield from (int(child) for child in task.read_text().split())


def stand_ins(chance: random.Random) -> list[tuple[str, bytes]]:
    """What tells the stand-in of the worker what to do, some of it so long that a kill meets it on its way."""
    sizes = [*(chance.randrange(400_000) for _ in range(9)), 3 * MIB]
    return [(order, trace(order, size)) for order in ORDERS for size in sizes]


def captures() -> list[tuple[str, bytes]]:
    """A small capture as it is, packed, damaged, cut short, and with other bytes in it."""
    with tempfile.TemporaryDirectory() as folder:
        whole = export(draw(PICTURE), Path(folder) / "a.sqlite").read_bytes()
    damaged = bytearray(whole)
    for place in range(len(whole) // 2, len(whole), 37):
        damaged[place] = place * 31 % 256
    packed = [("fine", gzip.compress(whole)), ("fine", lzma.compress(whole))]
    bad = [("damaged", bytes(damaged)), ("cut", whole[: len(whole) // 2]), ("none", trace(padding=9_000))]
    return [("fine", whole)] * 8 + packed * 2 + bad


def soak(
    disk: Disk, *, uploads: int, kills: int, worker_kills: int, fills: int, seed: int = 1, real: bool = False
) -> Soak:
    """Send uploads while things break; raise an AssertionError where a promise is broken."""
    chance = random.Random(seed)
    done = Soak(disk, chance, captures() if real else stand_ins(chance))
    killed, hurt = (set(chance.sample(range(uploads), number)) for number in (kills, worker_kills))
    step = uploads // (fills * 3 + 1)
    fill_at = {step * (1 + 3 * number) for number in range(fills)}
    clear_at = {at + step for at in fill_at}
    with ExitStack() as stack:
        running = stack.enter_context(_started(disk, real=real))
        for number in range(uploads):
            if number in fill_at:
                disk.fill()
            if number in clear_at:
                disk.clear()
            if number in hurt:
                _soon(chance, done.kill_a_worker, running)
            end = _soon(chance, running.kill) if number in killed else None
            done.send(running)
            time.sleep(PAUSE_S * real)
            if end is not None:
                end.join()
                begun = time.monotonic()
                stack.close()
                running = stack.enter_context(_started(disk, real=real))
                done.worst_start_s = max(done.worst_start_s, time.monotonic() - begun)
        disk.clear()
        done.check(running, seconds=1_200)
    return done


def _soon(chance: random.Random, act: Callable[..., None], *given: Server) -> threading.Timer:
    """Do something at a random moment, while an upload is under way or a job."""
    timer = threading.Timer(chance.random() * WITHIN_S, act, given)
    timer.start()
    return timer


def _started(disk: Disk, *, real: bool) -> AbstractContextManager[Server]:
    told = None if disk.is_real else disk.told
    return server(disk.data, real=real, free=told, spare_bytes=16 * MIB, waiting=400)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, number in (("uploads", 500), ("kills", 25), ("worker-kills", 60), ("fills", 2), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--disk", type=Path)
    parser.add_argument("--real", action="store_true")
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
            real=chosen.real,
        )
        shutil.rmtree(disk.data)
        print(f"{time.monotonic() - begun:.0f} s, slowest start {done.worst_start_s:.1f} s")  # noqa: T201
        for title, counted in (("answers", done.answers), ("accepted became", done.states), ("why", done.reasons)):
            print(title, dict(counted.most_common()))  # noqa: T201


if __name__ == "__main__":
    main()
