"""Whatever is registered is documented, named in words and tested: commands, formats, metrics, what-if changes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from bubblefinder.compare.metrics import METRICS
from bubblefinder.compare.sentences import metric_label
from bubblefinder.render.formats import FORMATS
from bubblefinder.replay.changes import Change
from tests.generated import commands, pages

ROOT = Path(__file__).parents[1]
COMMANDS = dict(commands())


@cache
def written_by_hand() -> str:
    places = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    texts = [place.read_text() for place in places]
    return "\n".join(text for text in texts if not text.startswith("<!-- Made from"))


@cache
def text_of_tests(folder: str) -> str:
    return "\n".join(place.read_text() for place in sorted((ROOT / "tests" / folder).rglob("test_*.py")))


@pytest.mark.parametrize("place", pages())
def test_the_made_pages_are_fresh(place: str) -> None:
    path = ROOT / place
    assert path.exists(), "run `python -m tests.generated`"
    assert path.read_text() == pages()[place], "run `python -m tests.generated`"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_command_is_explained_on_a_page_and_has_tests(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert (command.help or "").strip().splitlines()[0].endswith(".")
    assert [one.name for one in command.params if not getattr(one, "help", None)] == []
    called = " ".join(path)
    told = f"bubblefinder {called}" in written_by_hand() or (len(path) > 1 and f"`{called}" in written_by_hand())
    assert told, "say on a page in docs/ what it is for"
    assert (ROOT / "tests" / "unit" / "cli" / f"test_{path[0]}.py").exists(), "test it"


@pytest.mark.parametrize("form", sorted({one.name for one in FORMATS}))
def test_a_format_is_explained_and_has_tests(form: str) -> None:
    page = (ROOT / "docs" / "formats.md").read_text()
    assert re.search(rf"^\| .*`{form}`", page, re.MULTILINE), "add its row to docs/formats.md"
    assert f'"{form}"' in text_of_tests("unit/render") + text_of_tests("integration"), "test it in tests/unit/render"


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_has_a_name_and_a_meaning_and_is_measured_in_a_test(metric: str) -> None:
    assert metric_label(metric) != metric, "give it a label in compare/metrics.toml"
    assert METRICS[metric].meaning
    ledger = re.sub(r"^(corrected\.)?(step)\.(\w+)\.(\w+)$", r"\2.", metric)
    told = text_of_tests("unit") + text_of_tests("integration")
    assert any(name in told for name in (metric, ledger)), "say in a test what it is"


@pytest.mark.parametrize("change", [one.__name__ for one in get_args(Change)])
def test_a_change_of_a_what_if_is_explained_and_has_tests(change: str) -> None:
    made = next(one for one in get_args(Change) if one.__name__ == change)
    assert (made.__doc__ or "").strip()
    assert f"`{change}`" in (ROOT / "docs" / "whatif.md").read_text(), "explain it in docs/whatif.md"
    assert change in text_of_tests("unit/replay"), "draw a loop that it changes in test_changes.py"
