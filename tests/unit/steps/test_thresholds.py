"""Every threshold says what it decides and what shows why, and what it names is there."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

from bubblefinder.steps import thresholds

SOURCE = Path(thresholds.__file__)
TESTS = "\n".join(path.read_text("utf-8") for path in Path(__file__).parents[2].rglob("test_*.py"))


def documented() -> dict[str, str]:
    body = ast.parse(SOURCE.read_text("utf-8")).body
    found = dict[str, str]()
    for one, said in pairwise(body):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            found[one.target.id] = ast.get_docstring(ast.Module([said], [])) or ""
    return found


def test_every_threshold_is_explained_and_used() -> None:
    used = "\n".join(path.read_text("utf-8") for path in SOURCE.parent.glob("*.py") if path != SOURCE)
    for name, said in documented().items():
        assert len(said) > 20, name
        assert re.search(rf"thresholds\.{name}\b", used), name


def test_what_thresholds_are_shown_by_exists() -> None:
    for name, said in documented().items():
        for test in re.findall(r"\btest_\w+", said):
            assert f"def {test}" in TESTS, (name, test)


def test_no_other_module_has_thresholds_of_its_own() -> None:
    number = re.compile(r"^_?[A-Z_]+(?:: Final)? = (?:0?\.\d+|\d{2,}[\d_]*)$", re.MULTILINE)
    found = {
        path.name: number.findall(path.read_text("utf-8")) for path in SOURCE.parent.glob("*.py") if path != SOURCE
    }
    assert not {name: numbers for name, numbers in found.items() if numbers and name != "contrast.py"}
