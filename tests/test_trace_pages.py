"""The pages about captures: every trap has its answer, every note its entry, and nothing more than there is."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from bubblefinder.timeline.model import CaptureMode
from bubblefinder.trace import model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOTE_MAKERS = {"QualityNote", "_counted", "_by_table"}
CODE = re.compile(r"[a-z]+(-[a-z]+)*")


def emitted(source: str) -> Iterator[str]:
    """The codes of the notes that a module can make."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == "_diagnostic_code":
            texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            yield from (text for text in texts if isinstance(text, str) and CODE.fullmatch(text))
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NOTE_MAKERS):
            continue
        match node.args[0]:
            case ast.Constant(value=str(code)):
                yield code
            case ast.JoinedStr(values=[ast.Constant(value=str(prefix)), *_]):
                yield from (f"{prefix}{mode.value}" for mode in CaptureMode)
            case ast.Name(id=name) if name.isupper():
                yield getattr(model, name)


def test_every_note_is_explained_and_every_explained_note_exists(root: Path) -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \|", (root / "docs/quality.md").read_text(), re.MULTILINE)
    folders = ("trace", "timeline", "steps", "causes", "report")
    modules = [path for folder in folders for path in (root / "src/bubblefinder" / folder).glob("*.py")]
    found = {code for module in modules for code in emitted(module.read_text())}
    assert len(found) > 20
    assert len(listed) == len(set(listed))
    assert set(listed) == found


def test_every_trap_is_answered_by_a_module_that_exists(root: Path) -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \| (.+) \| `(.+)` \|$", (root / "docs/traps.md").read_text(), re.MULTILINE)
    assert [int(number) for number, *_ in rows] == list(range(1, 76))
    assert all(len(trap) > 20 and len(answer) > 3 for _, trap, answer, _ in rows)
    missing = [module for *_, module in rows if not (root / "src/bubblefinder" / module).is_file()]
    assert missing == []
