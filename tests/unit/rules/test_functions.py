from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from bubblefinder.cli.rules import rules
from bubblefinder.errors import UsageError
from bubblefinder.rules.functions import DOMAIN, functions_trace
from bubblefinder.rules.model import Functions
from bubblefinder.rules.packs import load_packs

if TYPE_CHECKING:
    from pathlib import Path

PACK = """
pack = "ours"
prefix = "OUR"
about = "our own loop"
[[functions]]
module = "ours.loop"
names = ["Loop.step", "old_read"]
until = "2.0"
[[functions]]
module = "ours.loop"
names = ["Loop.step", "new_read"]
since = "1.5"
"""


def traced(folder: Path, *wanted: str) -> list[dict[str, object]]:
    (folder / "ours.toml").write_text(PACK)
    return functions_trace(load_packs([folder]), wanted)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("ours", ["Loop.step", "old_read", "new_read"]),
        ("ours==1.0", ["Loop.step", "old_read"]),
        ("ours==1.5", ["Loop.step", "old_read", "new_read"]),
        ("ours==1.10.2.post1", ["Loop.step", "old_read", "new_read"]),
        ("ours==2.0", ["Loop.step", "new_read"]),
    ],
)
def test_a_version_gets_the_functions_it_has(tmp_path: Path, wanted: str, names: list[str]) -> None:
    assert traced(tmp_path, wanted) == [{"module": "ours.loop", "domain": DOMAIN, "functions": names}]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("sglamg", "did you mean 'sglang'"),
        ("pytorch", "lists no functions"),
        ("sglang==new", "'new' is no version"),
        ("sglang==", "'' is no version"),
    ],
)
def test_a_wrong_word_is_named(wanted: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        functions_trace(load_packs(), [wanted])


def test_no_pack_means_every_pack_that_lists_functions() -> None:
    modules = {str(entry["module"]) for entry in functions_trace(load_packs(), ())}
    assert {module.split(".")[0] for module in modules} == {"sglang", "flashinfer", "vllm", "tensorrt_llm"}


def test_ranges_are_named_as_the_rules_expect_them() -> None:
    """The rules of an engine's waits look for names that Nsight Systems will open."""
    entries = functions_trace(load_packs(), ["sglang==0.5.17", "flashinfer==0.6.15"])
    names = [f"{entry['module']}.{name}" for entry in entries for name in entry["functions"]]  # type: ignore[attr-defined]
    ids = {"SGL001", "SGL002", "SGL005", "FI001"}
    found = [rule for rule in load_packs().rules if rule.id in ids]
    assert len(found) == len(ids)
    for rule in found:
        tests = [test.any for table in rule.wait if (test := table.nvtx_stack)]  # type: ignore[attr-defined]
        assert any(re.search(test, name) for test in tests for name in names), rule.id


def test_versions_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"no version lies from 2\.0 up to 1\.9"):
        Functions(module="a.b", names=("f",), since="2.0", until="1.9")


def test_the_command_writes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "fns.json"
    assert CliRunner().invoke(rules, ["functions", "sglang==0.5.17", "-o", str(path)]).exit_code == 0
    entries = json.loads(path.read_text())
    assert {"module", "domain", "functions"} == set(entries[0])
    printed = CliRunner().invoke(rules, ["functions", "sglang==0.5.17"])
    assert json.loads(printed.output) == entries


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(rules, ["functions", "-o", str(tmp_path / "none" / "fns.json")])
    assert isinstance(result.exception, UsageError)
