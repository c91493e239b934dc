"""The HTML report in a browser: no error, no request, accessible, and usable without a mouse."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pytest

from bubblefinder.render.formats import write
from tests import samples
from tests.axe import faults
from tests.unit.report.sample import graph_report, healthy_report, hostile_report, sample_report, unseen_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from bubblefinder.report.model import Report

pytestmark = pytest.mark.browser
REPORTS: dict[str, Callable[[], Report]] = {
    "sample": partial(sample_report, steps=60, gpus=2),
    "hostile": hostile_report,
    "healthy": healthy_report,
    "graph": graph_report,
    "unseen": unseen_report,
    "real": partial(samples.report, "tp2_before.node"),
    "chain": partial(samples.report, "sglang/chain.graph"),
}
AXED = {"hostile", "graph", "unseen", "real", "chain"}
LONG = "document.documentElement.scrollWidth"


@dataclass
class Watched:
    """A page and everything it complained about or asked for."""

    page: Page
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.problems.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def show(self, report: Report, folder: Path) -> None:
        path = folder / "report.html"
        write("report", report, path)
        self.page.goto(path.as_uri())
        self.page.wait_for_function(
            "[...document.querySelectorAll('[data-chart]')].every((chart) => chart.querySelector('.main-svg'))"
        )


@pytest.fixture
def watched(page: Page) -> Watched:
    return Watched(page)


@pytest.fixture(scope="module")
def shown(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page of the sample, opened once."""
    page = browser.new_page(color_scheme="light")
    Watched(page).show(REPORTS["sample"](), tmp_path_factory.mktemp("shown"))
    yield page
    page.close()


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


@pytest.mark.parametrize("which", REPORTS)
def test_it_loads_alone_in_silence_fits_and_is_accessible(watched: Watched, tmp_path: Path, which: str) -> None:
    page = watched.page
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    watched.show(REPORTS[which](), tmp_path)
    assert page.evaluate(LONG) <= 1280
    for chart in page.locator("[data-chart]").all():
        chart.scroll_into_view_if_needed()
        chart.hover()
        chart.press("+")
        chart.press("ArrowRight")
        chart.press("0")
    for fold in page.locator("summary").all()[:1]:
        fold.click()
    unfold(page)
    assert which not in AXED or faults(page) == []
    page.get_by_role("button", name="Dark theme").click()
    page.emulate_media(media="print")
    assert watched.problems == []
    assert watched.requests == [page.url]


@pytest.mark.parametrize("which", REPORTS)
def test_in_the_dark_it_loads_narrow_fits_and_can_be_read(watched: Watched, tmp_path: Path, which: str) -> None:
    page = watched.page
    page.set_viewport_size({"width": 400, "height": 900})
    page.emulate_media(color_scheme="dark")
    watched.show(REPORTS[which](), tmp_path)
    assert page.evaluate(LONG) <= 400
    page.set_viewport_size({"width": 1280, "height": 900})
    unfold(page)
    assert which not in AXED or faults(page, colours_alone=True) == []
    assert watched.problems == []
    assert watched.requests == [page.url]


def test_hostile_names_run_nothing(watched: Watched, tmp_path: Path) -> None:
    watched.show(REPORTS["hostile"](), tmp_path)
    page = watched.page
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 4
    assert "</script><img src=x onerror=alert(1)>" in page.inner_text("#verdict")


def test_the_keyboard_zooms_moves_and_resets(shown: Page) -> None:
    chart = shown.locator("[data-chart=timeline-median]")

    def seen() -> list[float]:
        found: list[float] = chart.evaluate("(place) => place._fullLayout.xaxis.range.slice()")
        return found

    first = seen()
    chart.press("+")
    near = seen()
    assert near[1] - near[0] == pytest.approx(0.6 * (first[1] - first[0]))
    chart.press("ArrowRight")
    assert seen()[0] > near[0]
    chart.press("0")
    assert seen() == pytest.approx(first)


def test_tables_sort_by_a_click_on_their_head(shown: Page) -> None:
    head = shown.locator("#kernels th", has_text="p50 us").first
    column = "[...document.querySelector('#kernels tbody').rows].map((row) => row.cells[3].textContent)"
    head.get_by_role("button").click()
    assert shown.evaluate(column) == ["17.18", "3.04", "2.08"]
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").click()
    assert shown.evaluate(column) == ["2.08", "3.04", "17.18"]


def test_the_theme_changes_the_charts_too(shown: Page) -> None:
    colour = "document.querySelector('[data-chart=run]').data[0].marker.color"
    light = shown.evaluate(colour)
    shown.get_by_role("button", name="Dark theme").click()
    assert (light, shown.evaluate(colour)) == ("#4f6f94", "#84a4cb")


def test_without_scripts_the_numbers_are_there(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    path = tmp_path / "report.html"
    write("report", REPORTS["sample"](), path)
    page.goto(path.as_uri())
    assert "The GPU idles" in page.inner_text("h1")
    assert page.locator("table").count() > 5
    context.close()
