"""A stand-in for Nsight Systems: runs the program, and writes what nsys would have written."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """#!{python}
import pathlib, shutil, subprocess, sys
arguments = sys.argv[1:]
log = pathlib.Path(__file__).with_name("log")
log.write_text(log.read_text() + " ".join(arguments) + chr(10) if log.exists() else " ".join(arguments) + chr(10))
place = arguments.index("-o" if arguments[0] == "profile" else "--output") + 1
output = pathlib.Path(arguments[place])
if arguments[0] == "profile":
    output.with_suffix("{suffix}").write_text("report")
    sys.exit(subprocess.run(arguments[place + 1:]).returncode)
shutil.copy("{export}", output) if "{export}" else output.write_text("export")
"""
IMPORTER = """#!{python}
import pathlib, sys
pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text("imported")
"""


def install(folder: Path, *, suffix: str = ".nsys-rep", export: Path | str = "", importer: bool = False) -> Path:
    """Install the stand-in under `folder` and return its command; with `importer` profiling leaves only a raw file."""
    command = folder / "target-linux-x64" / "nsys"
    command.parent.mkdir(parents=True)
    command.write_text(SCRIPT.format(python=sys.executable, suffix=".qdstrm" if importer else suffix, export=export))
    command.chmod(0o755)
    if importer:
        beside = folder / "host-linux-x64" / "QdstrmImporter"
        beside.parent.mkdir()
        beside.write_text(IMPORTER.format(python=sys.executable))
        beside.chmod(0o755)
    return command
