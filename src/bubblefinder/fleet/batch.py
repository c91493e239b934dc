"""Captures by the dozen: on this machine's processes or on a scheduler that runs already, taken up where it stopped."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bubblefinder.ending import begun, deaf, temporary_folder
from bubblefinder.errors import InputError, UsageError
from bubblefinder.fleet.analyse import Analysed, analyse, side_by_side
from bubblefinder.fleet.model import Failure, Fleet, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from distributed import Client, LocalCluster


STATE: Final = "captures.jsonl"
REPORTS: Final = "reports"
_PACKED: Final = {".xz": 12, ".zst": 8, ".gz": 6}
"""How much larger an export is than its packed file, at most as often seen."""
_BASE: Final = 250_000_000
"""Bytes that a worker takes whatever it reads: 132 MB were measured on a small capture."""
_PER_BYTE: Final = 7.0
"""Bytes of memory a byte of an export takes while it is analysed: 4 (2 M kernels) to 7 (0.4 M) were measured."""
_USABLE: Final = 0.8
"""Share of the free memory that captures may take together."""
_CLEANED: Final = "ignore:resource_tracker"
"""What Python's own helper would say of the workers' semaphores, which it takes away behind an ended program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Where captures are analysed: so many processes here (null: one a core), or a scheduler by address."""

    number: int | None = None
    scheduler: str | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    """What is kept of a capture that is done; `key` tells its file from a changed one."""

    key: str
    path: str
    rows: tuple[Row, ...]
    failure: Failure | None


def batch(paths: Sequence[Path], out: Path, workers: Workers, tell: Callable[[Analysed], None]) -> Fleet:
    """Analyse captures that are new or changed, keep each report in `out`, and return all of them side by side.

    Args:
        paths: the captures.
        out: a folder; what a run before left there of the same files is taken as it is.
        workers: where to analyse.
        tell: called with each capture as it is done, the known ones first.

    Raises:
        InputError: the folder can't be written, or the scheduler not reached.
        UsageError: dask.distributed is not installed.
    """
    (out / REPORTS).mkdir(parents=True, exist_ok=True)
    keys = {str(path): _key(path) for path in paths}
    known = {path: done for path, (key, done) in _state(out).items() if keys.get(path) == key}
    for done in known.values():
        tell(done)
    todo = [path for path in paths if str(path) not in known]
    results = dict(known)
    if todo:
        with _client(workers) as client, (out / STATE).open("ab") as state:
            for done in _run(client, todo, None if workers.scheduler else _memory()):
                if done.report:
                    (out / REPORTS / report_name(done.path)).write_bytes(done.report)
                state.write(msgspec.json.encode(_Line(keys[done.path], done.path, done.rows, done.failure)) + b"\n")
                state.flush()
                results[done.path] = done
                tell(done)
    return side_by_side([results[str(path)] for path in paths])


def _key(path: Path) -> str:
    """Return what tells a file from a changed one: its size and time, or those of what a folder holds."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    told = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def _state(out: Path) -> dict[str, tuple[str, Analysed]]:
    """Return what earlier runs left, by path; a line that was cut off counts for nothing."""
    found = {}
    for line in (out / STATE).read_bytes().splitlines() if (out / STATE).exists() else []:
        with suppress(msgspec.MsgspecError):
            known = msgspec.json.decode(line, type=_Line)
            found[known.path] = known.key, Analysed(known.path, known.rows, failure=known.failure)
    return found


def report_name(path: str) -> str:
    """Return the name of a capture's report: its own, and a few letters of its path, since names repeat."""
    return f"{Path(path).name.split('.sqlite')[0]}-{hashlib.sha256(path.encode()).hexdigest()[:8]}.json"


@contextmanager
def _client(workers: Workers) -> Iterator[Client]:
    try:
        import dask
        from distributed import Client, LocalCluster
        from distributed.utils import LoopRunner
    except ImportError as error:
        raise UsageError(
            "batch needs dask.distributed, which is not installed",
            hint="in bubblefinder's source folder: pip install '.[fleet]'",
        ) from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters of a worker's end is told by its capture
    if workers.scheduler:
        try:
            client = Client(workers.scheduler, timeout="10s")
        except (OSError, ValueError) as error:
            raise InputError(
                f"no scheduler answers at {workers.scheduler}", hint="give its address, as in tcp://host:8786"
            ) from error
        with client:
            yield client
        return
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), _CLEANED)))
    with temporary_folder() as scratch, dask.config.set({"temporary-directory": str(scratch)}):
        with deaf():
            starter = LoopRunner()
            starter.start()
        cluster = LocalCluster(
            n_workers=workers.number, threads_per_worker=1, processes=True, memory_limit=0, loop=starter.loop,
            env={"TMPDIR": str(scratch)}, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL,
        )  # fmt: skip
        with cluster, begun(lambda: _kill(cluster)), Client(cluster) as client:
            yield client


def _kill(cluster: LocalCluster) -> None:
    """End the workers before their folder is taken away: they would write to it until they see that they are alone."""
    for nanny in cluster.workers.values():
        if nanny.pid:
            os.kill(nanny.pid, signal.SIGKILL)


def _memory() -> int:
    import psutil

    return int(psutil.virtual_memory().available * _USABLE)


def _run(client: Client, paths: Sequence[Path], memory: int | None) -> Iterator[Analysed]:
    """Yield each capture as it is done; no more are under way than fit into the memory, but always one."""
    from distributed import as_completed

    waiting = sorted(paths, key=_need, reverse=True)
    running: dict[Any, tuple[Path, int]] = {}
    done = as_completed()
    while waiting or running:
        taken = sum(need for _, need in running.values())
        while waiting and (not running or memory is None or taken + _need(waiting[0]) <= memory):
            path = waiting.pop(0)
            future = client.submit(analyse, str(path), pure=False, retries=0)
            running[future] = path, _need(path)
            taken += _need(path)
            done.add(future)
        future = next(done)
        path, _ = running.pop(future)
        yield _result(future, path)
        future.release()


def _result(future: Any, path: Path) -> Analysed:  # noqa: ANN401 - distributed has no types
    if future.status == "finished":
        found: Analysed = future.result()
        return found
    error = future.exception()
    return Analysed(str(path), failure=Failure(str(path), f"its worker ended: {type(error).__name__}"))


def _need(path: Path) -> int:
    """Return how many bytes of memory the analysis of a capture takes at most."""
    size = sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))
    return int(_BASE + _PER_BYTE * size * _PACKED.get(path.suffix, 1))
