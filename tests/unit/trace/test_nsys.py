from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest

from bubblefinder.trace.nsys import import_recording, run_tool

if TYPE_CHECKING:
    from pathlib import Path

IMPORTER = """#!{python}
import os, pathlib, signal, sys
seen = pathlib.Path({seen!r})
seen.write_text(seen.read_text() + "x" if seen.exists() else "x")
if len(seen.read_text()) <= {crashes}:
    os.kill(os.getpid(), signal.SIGSEGV)
pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text("imported")
"""


@pytest.mark.parametrize(("crashes", "code", "runs"), [(0, 0, 1), (1, 0, 2), (2, -11, 2)])
def test_an_importer_that_crashes_is_run_once_more(tmp_path: Path, crashes: int, code: int, runs: int) -> None:
    importer, seen, report = tmp_path / "QdstrmImporter", tmp_path / "seen", tmp_path / "a.nsys-rep"
    importer.write_text(IMPORTER.format(python=sys.executable, seen=str(seen), crashes=crashes))
    importer.chmod(0o755)
    done = import_recording(importer, tmp_path / "a.qdstrm", report, lambda _: None)
    assert (done.code, len(seen.read_text())) == (code, runs)
    assert report.exists() is (code == 0)


def test_an_interrupted_run_leaves_no_thread_that_python_would_wait_for() -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tool([sys.executable, "-c", "print('50%', flush=True)"], "export", interrupted)
    left = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    for timer in left:
        timer.join(timeout=10)
    assert not any(timer.is_alive() for timer in left)
