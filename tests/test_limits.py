"""docs/limits.md and docs/quality.md name notes and rules that exist, and quality.md names all of them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIMITS = (ROOT / "docs" / "limits.md").read_text()
QUALITY = (ROOT / "docs" / "quality.md").read_text()
SOURCES = "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
CODE = r"[a-z]+(?:-[a-z]+)+"


def explained() -> set[str]:
    """The codes that have a row of their own in quality.md."""
    return set(re.findall(rf"^\| `({CODE})` \|", QUALITY, re.MULTILINE))


def test_every_code_of_the_limits_is_explained() -> None:
    named = set(re.findall(rf"`({CODE})`", LIMITS))
    assert len(named) > 15
    assert named - explained() == set()


def test_every_code_that_is_explained_exists() -> None:
    modes = {code for code in explained() if code.startswith("capture-mode-")}
    assert {code for code in explained() - modes if f'"{code}"' not in SOURCES} == set()
    assert 'f"capture-mode-{mode.value}"' in SOURCES


def test_every_note_that_is_written_is_explained() -> None:
    written = set(re.findall(rf'(?:QualityNote|_counted|_by_table)\(\s*"({CODE})"', SOURCES))
    assert len(written) > 20
    assert written - explained() == set()


def test_the_rules_that_the_limits_name_have_a_page() -> None:
    named = set(re.findall(r"\b[A-Z]{2,5}\d{3}\b", LIMITS))
    assert named
    assert all((ROOT / "docs" / "rules" / f"{rule}.md").exists() for rule in named)
