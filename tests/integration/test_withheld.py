"""Where the profiler's part of a step can't be told, no format and no field says what a cure gives but as a range."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from bubblefinder.render.formats import formats_of, render
from tests.samples import FOLDER, report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.report.model import Report

NAMES: Final = sorted(str(path.relative_to(FOLDER)).removesuffix(".sqlite.xz") for path in FOLDER.rglob("*.sqlite.xz"))
POINTS: Final = frozenset({"recoverable_ns", "in_turn_ns", "step_after_ns"})
"""The fields of report/1 that say what a change gives, or what it leaves, without a range."""
GIVES: Final = re.compile(
    r"\b(?:gives?|recover|in its turn|gives it|step then(?: takes)?|(?:then|a step) takes?|back|together:?)"
    r"(?: about| at most)? (\d[\d.,]* (?:ns|us|ms|s)\b)(?! to \d| a step at most)"
)
"""The words behind which a report says a gain, or the step after it, with no range there instead; a bound is none."""
WORDS: Final = sorted(set(formats_of("report")) - {"json", "csv", "parquet"})


def withheld(told: Report) -> bool:
    return told.overhead.untold_ns is not None


def fields(value: Any, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield every field of a document: its path, its name and its value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{path}.{name}", name, inner
            yield from fields(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from fields(inner, f"{path}[{number}]")


def plain(text: str) -> str:
    """Return what a reader sees: without tags and styles, on one line."""
    bare = re.sub(r"(?s)<(style|script)\b.*?</\1>|<[^>]+>", " ", text)
    return " ".join(html.unescape(bare).replace("**", "").split())


@pytest.mark.parametrize("name", NAMES)
def test_no_field_has_a_value_where_there_is_a_range_alone(name: str) -> None:
    told = report(name)
    document = json.loads(render("report", told, "json"))
    points = {path: value for path, field, value in fields(document) if field in POINTS and value is not None}
    if not withheld(told):
        ranged = [finding for finding in told.findings if finding.recoverable_ns is not None]
        assert all(finding.recoverable_range_ns for finding in ranged)
        return
    assert points == {}
    assert told.joint is None
    assert document["joint"] is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", WORDS)
def test_no_format_says_a_value_where_there_is_a_range_alone(name: str, form: str) -> None:
    told = report(name)
    if withheld(told):
        content = render("report", told, form)
        said = plain(content.decode() if isinstance(content, bytes) else content)
        assert GIVES.findall(said) == []


def test_such_samples_are_there_with_a_chain_and_with_a_late_host() -> None:
    known = [told for name in NAMES if withheld(told := report(name))]
    assert any(told.wait_chains for told in known)
    assert any(told.host and told.host.shorten for told in known)


def test_the_words_are_found_where_there_are_values() -> None:
    said = plain(str(render("report", report("sglang/chain.graph"), "text")))
    assert len(GIVES.findall(said)) > 5


@pytest.mark.parametrize("name", NAMES)
def test_in_a_chain_the_host_prepares_at_least_as_long_as_the_gpu_waits_for_it(name: str) -> None:
    for chain in report(name).wait_chains:
        assert 0 <= (chain.idle_ns or 0) <= (chain.preparing_ns or 0)
        for link in chain.links:
            for value, ends in (
                (link.recoverable_ns, link.recoverable_range_ns),
                (link.in_turn_ns, link.in_turn_range_ns),
            ):
                assert ends is not None
                assert 0 <= ends[0] <= (ends[0] if value is None else value) <= ends[1]
