"""The pages of comparisons, budgets and trends in a browser: no error, no request, accessible."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.baseline import of_reports
from bubblefinder.compare.budget import BudgetFile
from bubblefinder.compare.diff import diff
from bubblefinder.compare.judge import judge
from bubblefinder.compare.source import load
from bubblefinder.render.formats import render
from bubblefinder.render.trend import html
from tests.axe import faults
from tests.unit.render.test_trend import a_trend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(sample: Callable[[str], Path]) -> dict[str, str]:
    """One page of each kind, from real captures where there are some."""
    base, head = load(sample("nextn_before.node")), load(sample("nextn_after.node"))
    limit = {"metric": "step.duration.p50", "max": "8 ms", "regress": 0.02, "why": "agreed", "owner": "us"}
    budget = BudgetFile.model_validate({"version": 1, "budget": [limit]})
    return {
        "diff": str(render("diff", diff([base], [head]), "html")),
        "budget": str(render("budget", judge(base, budget, of_reports([head], base), date(2026, 11, 29)), "html")),
        "trend": html(a_trend(*[7e6] * 4, *[7.7e6] * 4)),
    }


@pytest.fixture(scope="module")
def compared(pages: dict[str, str], browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page of a comparison, opened once."""
    path = tmp_path_factory.mktemp("compared") / "page.html"
    path.write_text(pages["diff"])
    page = browser.new_page()
    page.goto(path.as_uri())
    yield page
    page.close()


def nothing_sticks_out(page: Page) -> None:
    """Hold a page that was opened at 400 pixels to that width; names of rows stay words."""
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    heads = [head.bounding_box() for head in page.locator("tbody th").all()]
    assert heads
    assert all(head and head["width"] >= 100 for head in heads)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["diff", "budget", "trend"])
def test_a_page_opens_quietly_and_reads_well_and_in_the_dark_at_400_pixels_nothing_sticks_out(
    pages: dict[str, str], page: Page, tmp_path: Path, kind: str, scheme: str
) -> None:
    problems, requests = list[str](), list[str]()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": 400 if scheme == "dark" else 1280, "height": 900})
    path = tmp_path / "page.html"
    path.write_text(pages[kind])
    page.goto(path.as_uri())
    if scheme == "dark":
        nothing_sticks_out(page)
        page.set_viewport_size({"width": 1280, "height": 900})
    assert page.locator("h1").inner_text() in {
        "Improvement",
        "Fail",
        "step.duration.p50 (rank 0), </title><script>alert(1)</script>",
    }
    assert problems == []
    assert requests == [path.as_uri()]
    assert faults(page, colours_alone=scheme == "dark") == []


def test_the_pictures_show_both_sides_on_one_scale(compared: Page) -> None:
    boxes = [r.bounding_box() for r in compared.locator("figure svg.bar rect").all()]
    ends = {round(b["y"]): 0.0 for b in boxes if b}
    for box in boxes:
        assert box is not None
        ends[round(box["y"])] = max(ends[round(box["y"])], box["x"] + box["width"])
    base, head = list(ends.values())[:2]
    assert head / base == pytest.approx(7.29 / 8.94, abs=0.02)


def test_both_steps_are_drawn_on_one_axis_that_zooms(compared: Page) -> None:
    chart = compared.locator("[data-chart=timelines]")
    chart.locator(".main-svg").first.wait_for()
    assert {(text or "").split(":")[0] for text in chart.locator(".annotation-text").all_text_contents()} == {
        "base",
        "head",
    }
    span = "place => place._fullLayout.xaxis.range[1] - place._fullLayout.xaxis.range[0]"
    before = chart.evaluate(span)
    chart.press("+")
    assert chart.evaluate(span) < before
    assert "graph replay" in compared.locator("[data-legend=timelines]").inner_text()


def test_every_colour_of_the_pictures_is_explained(compared: Page) -> None:
    for figure in compared.locator("figure").all():
        drawn, told = (
            {mark.get_attribute("class") for mark in figure.locator(where).all()}
            for where in ("svg.bar rect", ".legend rect")
        )
        assert drawn == told
