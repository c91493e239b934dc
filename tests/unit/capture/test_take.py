"""Recording runs the program under nsys and exports what came of it, and replaces nothing unasked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from bubblefinder.capture.plan import Wish, plan
from bubblefinder.capture.take import check_free, find_nsys, take
from bubblefinder.errors import CannotAnswerError, UsageError
from bubblefinder.trace import nsys as installed
from bubblefinder.trace.nsys import installed_nsys

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.capture.plan import Plan
    from bubblefinder.trace.nsys import Nsys

SCRIPT = """#!{python}
import pathlib, subprocess, sys
words = sys.argv[1:]
if words == ["--version"]:
    print("NVIDIA Nsight Systems version 2025.3.2")
elif words == ["profile", "--help"]:
    print("--trace= --cuda-graph-trace= --capture-range= --capture-range-end= --output=")
elif words[0] == "profile":
    (stem,) = [word.partition("=")[2] for word in words if word.startswith("--output=")]
    if {records}:
        pathlib.Path(stem + "{suffix}").write_text("report")
    sys.exit(subprocess.run(words[-2:]).returncode)
else:
    pathlib.Path(words[words.index("--output") + 1]).write_text("export of " + pathlib.Path(words[-1]).read_text())
    sys.exit({code})
"""
IMPORTER = """#!{python}
import pathlib, sys
pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text("imported")
"""


def stand_in(folder: Path, *, records: bool = True, suffix: str = ".nsys-rep", code: int = 0) -> Nsys:
    command = folder / "target-linux-x64" / "nsys"
    command.parent.mkdir(parents=True)
    command.write_text(SCRIPT.format(python=sys.executable, records=records, suffix=suffix, code=code))
    command.chmod(0o755)
    if suffix == ".qdstrm":
        importer = folder / "host-linux-x64" / "QdstrmImporter"
        importer.parent.mkdir()
        importer.write_text(IMPORTER.format(python=sys.executable))
        importer.chmod(0o755)
    found = installed_nsys(command)
    assert found is not None
    return found


def planned(nsys: Nsys, stem: Path) -> tuple[Plan, Wish]:
    wish = Wish((sys.executable, "-V"), "node", stem)
    return plan(wish, nsys), wish


@pytest.mark.parametrize(("suffix", "content"), [(".nsys-rep", "report"), (".qdstrm", "imported")])
def test_what_is_recorded_is_exported(suffix: str, content: str, tmp_path: Path) -> None:
    nsys = stand_in(tmp_path / "nsys", suffix=suffix)
    found, wish = planned(nsys, tmp_path / "decode.v1")
    check_free(found, wish)
    export = take(found.recordings[0], nsys, lambda _: None)
    assert export == tmp_path / "decode.v1.sqlite"
    assert export.read_text() == f"export of {content}"


def test_nsys_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = stand_in(tmp_path / "nsys").command
    monkeypatch.setenv("PATH", str(command.parent))
    assert find_nsys().command == command


def test_no_nsys_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(installed, "ROOTS", ())
    for given in (None, tmp_path / "gone"):
        with pytest.raises(UsageError, match="wasn't found") as caught:
            find_nsys(given)
        assert "--nsys" in caught.value.hint


def test_files_that_are_there_are_kept(tmp_path: Path) -> None:
    nsys = stand_in(tmp_path / "nsys")
    found, wish = planned(nsys, tmp_path / "decode")
    found.recordings[0].report.write_text("mine")
    with pytest.raises(UsageError, match=r"decode\.nsys-rep exists") as caught:
        check_free(found, wish)
    assert "--force" in caught.value.hint
    check_free(found, Wish(wish.command, wish.mode, wish.stem, force=True))
    with pytest.raises(UsageError, match="no folder"):
        check_free(found, Wish(wish.command, wish.mode, tmp_path / "nowhere" / "decode"))


def test_a_range_that_never_opened_is_said(tmp_path: Path) -> None:
    nsys = stand_in(tmp_path / "nsys", records=False)
    found, _ = planned(nsys, tmp_path / "decode")
    with pytest.raises(CannotAnswerError, match="nothing was recorded") as caught:
        take(found.recordings[0], nsys, lambda _: None)
    assert "cudaProfilerStart" in caught.value.hint


def test_a_failed_export_leaves_no_half_of_one(tmp_path: Path) -> None:
    nsys = stand_in(tmp_path / "nsys", code=1)
    found, _ = planned(nsys, tmp_path / "decode")
    with pytest.raises(UsageError, match="can't be exported"):
        take(found.recordings[0], nsys, lambda _: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["decode.nsys-rep", "nsys"]
