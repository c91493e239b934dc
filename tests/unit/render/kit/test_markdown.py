"""Sheets as comments: what is read at once, and what opens on a click."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblefinder.render.kit.markdown import link, summary, write
from bubblefinder.render.kit.sheet import Sheet, Table

SHEET = Sheet(
    document="diff",
    title="a against b",
    headline="Regression: a step takes longer",
    verdict="Regression",
    rest="A step takes longer",
    level="fail",
    points=(("What to do", "Compare @everyone's tables"), ("Head", "nightly at abc1234")),
    basis="It rests on 2 captures.",
    tables=(Table("A decode step, ms", ("", "base"), [("step", "1.0")]),),
)


def test_verdict_points_and_link_are_read_at_once_and_the_rest_is_folded() -> None:
    text = write(SHEET, "https://ci.example/report.html")
    opened = text.split("<details>")[0]
    assert opened.splitlines() == [
        "### bubblefinder diff",
        "",
        "✗ **Regression**: A step takes longer",
        "",
        "* **What to do**: Compare &#64;&#8203;everyone's tables",
        "* **Head**: nightly at abc1234",
        "",
        "[full report](https://ci.example/report.html)",
        "",
    ]
    assert text.endswith("<!-- bubblefinder:diff -->\n")
    assert "<!--" not in summary(SHEET, "https://ci.example/report.html")
    assert "full report" not in write(SHEET)


def test_an_answer_that_judges_nothing_has_no_sign() -> None:
    assert "\n**Regression**: A step takes longer\n" in write(replace(SHEET, level=None))
    assert "\n✓ **Regression**" in write(replace(SHEET, level="ok"))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example/x?y=1", "[here](https://a.example/x?y=1)"),
        ("https://a.example/) [b](c", "[here](https://a.example/%29%20%5Bb%5D%28c)"),
        ("", ""),
    ],
)
def test_an_address_can_not_end_its_link(url: str, expected: str) -> None:
    assert link("here", url) == expected
