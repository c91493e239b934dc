from __future__ import annotations

import gzip
import json
import lzma
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from bubblefinder.errors import EXIT_INPUT
from bubblefinder.report.json import read_report
from bubblefinder.web.events import window
from bubblefinder.web.limits import Limit
from bubblefinder.web.orders import STAGES, Comparison, Upload
from bubblefinder.web.work import analyse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Sample = Callable[[str], Path]
    Process = subprocess.Popen[bytes]

LIMIT = Limit(memory_bytes=4 << 30, file_bytes=1 << 30, seconds=300)
GONE = 70
COMMAND = [sys.executable, "-m", "bubblefinder.web.worker"]


@pytest.fixture(scope="module")
def worker() -> Iterator[Process]:
    """A process for the jobs that end by themselves, as the server has one."""
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == GONE


def work(process: Process, limit: Limit = LIMIT, **jobs: Any) -> tuple[list[dict[str, Any]], int]:
    """Do one job and return all that was said of it, and its exit code."""
    assert process.stdin is not None
    assert process.stdout is not None
    order = {"limit": asdict(limit)} | {kind: asdict(job) for kind, job in jobs.items()}
    process.stdin.write(json.dumps(order).encode() + b"\n")
    process.stdin.flush()
    said: list[dict[str, Any]] = []
    while not said or "ended" not in said[-1]:
        said.append(json.loads(process.stdout.readline()))
    assert list(said[0]) == ["pid"]
    return said[1:-1], said[-1]["ended"]


def done_here(job: Upload) -> dict[str, Any]:
    """Do one analysis in this process, within no limits; return what the list of runs shows of it."""
    with mock.patch.object(tempfile, "tempdir", None):
        return analyse(job, lambda **_: None, lambda _: None)


def analysis(upload: Path, tmp_path: Path, **values: Any) -> Upload:
    scratch = tmp_path / "scratch" / upload.name
    job = {"upload": str(upload), "scratch": str(scratch), "name": "shown.sqlite", "label": "nightly", "commit": "abc"}
    return Upload(**job | {"unpacked_bytes": 1 << 30, "archive_files": 100} | values)


def test_a_capture_becomes_every_output(worker: Process, sample: Sample, tmp_path: Path) -> None:
    job = analysis(sample("nextn_before.node"), tmp_path)
    said, code = work(worker, analysis=job)
    assert code == 0
    stages = [one["stage"] for one in said[:-1]]
    assert [stage for stage in stages if stage in STAGES] == list(STAGES)
    found = said[-1]["done"]
    folder = tmp_path / "scratch" / sample("nextn_before.node").name / "finished"
    report = read_report(folder / "report.json")
    assert (report.trace.name, report.run.label, report.run.commit) == ("shown.sqlite", "nightly", "abc")
    assert any(role.shapes for one in report.detail.accounts for role in one.roles), "comparisons need them"
    assert found["step_p50_ns"] == report.steps.per_step["duration"].p50 == found["metrics"]["step.duration.p50"]
    assert found["bubble_share"] == report.steps.bubble_share.total
    assert found["at_least"] is False
    assert found["verdict"] in (folder / "report.md").read_text().replace("**", "")
    assert read_report(folder / "report.html").findings == report.findings
    assert "<script>" not in (folder / "body.html").read_text()
    shown = window(folder / "events", None, None)
    assert sum(track["rows"] for track in shown["tracks"] if track["group"] == "gpu") == 17_570 + 60 + 120


def test_two_reports_become_a_comparison(worker: Process, sample: Sample, tmp_path: Path) -> None:
    paths = []
    for name in ("null_gpu_1.graph", "null_gpu_2.graph"):
        job = analysis(sample(name), tmp_path)
        done_here(job)
        paths.append(str(job.scratch) + "/finished/report.json")
    out = tmp_path / "out"
    out.mkdir()
    said, code = work(worker, comparison=Comparison(base=paths[:1], head=paths[1:], out=str(out)))
    assert (said, code) == ([{"done": {}}], 0)
    assert json.loads((out / "diff.json").read_text())["verdict"] == "no change"
    assert sorted(path.name for path in out.iterdir()) == [
        "body.html",
        "diff.html",
        "diff.json",
        "diff.md",
    ]


def test_an_error_calls_the_trace_what_its_sender_calls_it(worker: Process, tmp_path: Path) -> None:
    upload = tmp_path / "upload"
    upload.write_bytes(b"SQLite format 3\0" + bytes(4096))
    said, code = work(worker, analysis=analysis(upload, tmp_path))
    assert code == EXIT_INPUT
    assert "shown.sqlite" in said[-1]["error"]
    assert str(tmp_path) not in json.dumps(said)


def test_the_worker_stays_within_its_memory() -> None:
    limit = Limit(memory_bytes=150 << 20, file_bytes=1 << 30, seconds=60)
    script = "from bubblefinder.web import limits, worker; worker._confine(limits.Limit(**{}))"
    told = subprocess.run(
        [sys.executable, "-c", script.format(asdict(limit)) + "; bytearray(400 << 20)"],
        capture_output=True,
        check=False,
    )
    assert told.returncode == 1
    assert b"MemoryError" in told.stderr


def test_a_job_that_is_killed_is_told_of_and_the_next_is_done(worker: Process, sample: Sample, tmp_path: Path) -> None:
    assert worker.stdin is not None
    assert worker.stdout is not None
    order = {"limit": asdict(LIMIT), "analysis": asdict(analysis(sample("nextn_before.node"), tmp_path))}
    worker.stdin.write(json.dumps(order).encode() + b"\n")
    worker.stdin.flush()
    os.kill(json.loads(worker.stdout.readline())["pid"], signal.SIGKILL)
    while "ended" not in (said := json.loads(worker.stdout.readline())):
        assert "done" not in said
    assert said == {"ended": -signal.SIGKILL}
    assert work(worker, analysis=analysis(sample("nextn_before.graph"), tmp_path))[1] == 0


@pytest.mark.parametrize("wait_s", [0.0, 0.5])
def test_the_worker_ends_when_its_server_is_gone(sample: Sample, tmp_path: Path, wait_s: float) -> None:
    order = {"limit": asdict(LIMIT), "analysis": asdict(analysis(sample("nextn_before.node"), tmp_path))}
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        time.sleep(wait_s)
        process.stdin.close()
        assert process.wait(20) == GONE


def test_the_worker_lowers_its_limits_to_what_the_capture_may_use(
    worker: Process, sample: Sample, tmp_path: Path
) -> None:
    said, code = work(worker, analysis=analysis(sample("nextn_before.graph"), tmp_path))
    assert code == 0
    (size,) = [one["bytes"] for one in said if "bytes" in one]
    assert size > 100_000
    fitted = LIMIT.fitted(size)
    assert fitted.seconds < LIMIT.seconds
    assert fitted.memory_bytes < LIMIT.memory_bytes


def test_a_disk_that_fills_up_is_told(tmp_path: Path) -> None:
    upload = tmp_path / "upload"
    upload.write_bytes(gzip.compress(bytes(8 << 20)))
    limit = Limit(memory_bytes=4 << 30, file_bytes=1 << 20, seconds=60)
    script = "import signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); from bubblefinder.web import worker;"
    script += "worker.NO_ROOM = {27}; sys.exit(worker.main())"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        said, code = work(process, limit, analysis=analysis(upload, tmp_path))
        assert (said[-1], code) == ({"disk": True}, EXIT_INPUT)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == GONE


def test_hostile_text_in_a_capture_costs_no_more_than_its_bytes(
    worker: Process, sample: Sample, tmp_path: Path
) -> None:
    upload = tmp_path / "hostile.sqlite"
    upload.write_bytes(lzma.decompress(sample("nextn_before.graph").read_bytes()))
    nested = "k" + "<" * 200_000 + ">" * 200_000
    with closing(sqlite3.connect(upload)) as capture, capture:
        capture.execute("UPDATE StringIds SET value = ? || id || value WHERE value NOT LIKE 'cu%'", [nested])
        for table, column in (("META_DATA_EXPORT", "value"), ("TARGET_INFO_GPU", "name"), ("NVTX_EVENTS", "text")):
            capture.execute(f"UPDATE {table} SET {column} = ? WHERE typeof({column}) = 'text'", ["v" * 4_000_000])
    begun = time.monotonic()
    said, code = work(worker, analysis=analysis(upload, tmp_path))
    assert code == 0, said[-1]
    assert time.monotonic() - begun < LIMIT.fitted(upload.stat().st_size).seconds / 2
    assert max(len(json.dumps(one)) for one in said) < 100_000
    assert said[-1]["done"]["nsys"] is None
