from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bubblefinder.cli.serve import _bound
from tests import processes, web
from tests.command import run
from tests.web import free_port, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = [sys.executable, "-c", "from bubblefinder.cli.app import main; main()", "serve"]


@contextmanager
def started(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*COMMAND, "--no-open", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=20)


def failed(*arguments: str, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [*COMMAND, "--no-open", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stderr


def worked_s(pid: int) -> float:
    """Processor time of a process so far: what a start takes, on however busy a machine."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_port_answers_before_the_rest_is_loaded(tmp_path: Path) -> None:
    port = free_port()
    processes.run([*COMMAND, "--help"], check=True)
    with started("--port", str(port), "--data", str(tmp_path)) as process:
        wait_for(port)
        assert worked_s(process.pid) < 1
        assert web.get(f"http://127.0.0.1:{port}/api/runs", timeout=20).json() == {"total": 0, "runs": []}


def test_the_address_is_printed_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    with started("--port", "0", "--data", str(tmp_path / "data")) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.split(" on ")[1].split(" ")[0]
        assert web.get(url, timeout=20).status_code == 200
        assert (tmp_path / "data").stat().st_mode & 0o077 == 0
        process.send_signal(2)
        assert process.wait(20) in {0, -2, 130}


def test_another_host_needs_a_token() -> None:
    code, said = failed("--host", "0.0.0.0", BUBBLEFINDER_TOKEN="")  # noqa: S104 - that is the case
    assert code == 2
    assert "needs a token" in said
    assert "BUBBLEFINDER_TOKEN" in said


def test_answers_are_sent_without_delay() -> None:
    with closing(_bound("127.0.0.1", 0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize("token", ["", "short"])
def test_a_token_that_keeps_nobody_out_is_refused_before_the_port_is_taken(token: str) -> None:
    code, said = failed("--token", token)
    assert (code, "listens" in said) == (2, False)
    assert "openssl rand" in said


def test_a_token_from_the_environment_is_asked_for(tmp_path: Path) -> None:
    port = free_port()
    with started("--port", str(port), "--data", str(tmp_path), BUBBLEFINDER_TOKEN="a secret that is long"):  # noqa: S106 - made up
        wait_for(port)
        url = f"http://127.0.0.1:{port}/api/runs"
        assert web.get(url, timeout=20).status_code == 401
        assert web.get(url, headers={"authorization": "Bearer a secret that is long"}, timeout=20).status_code == 200


def test_a_port_in_use_says_so(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = failed("--port", str(taken.getsockname()[1]), "--data", str(tmp_path))
    assert code == 2
    assert "can't listen" in said
    assert "--port 0" in said


def test_a_folder_in_use_says_so(tmp_path: Path) -> None:
    port = free_port()
    with started("--port", str(port), "--data", str(tmp_path)):
        wait_for(port)
        deadline = time.monotonic() + 10
        while not (tmp_path / "runs.db").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        code, said = failed("--port", "0", "--data", str(tmp_path))
    assert code == 2
    assert "another bubblefinder server" in said


def test_a_missing_extra_says_how_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ImportError('not installed')")
    code, said = failed("--port", "0", "--data", str(tmp_path / "data"), PYTHONPATH=str(tmp_path))
    assert code == 2
    assert "pip install" in said
    assert "[web]" in said


@pytest.mark.parametrize("option", ["--max-upload", "--max-disk", "--keep", "--jobs", "--memory"])
def test_limits_must_leave_something(option: str) -> None:
    assert run("serve", "--no-open", option, "0").returncode == 2
