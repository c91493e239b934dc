"""The upload page in a browser: an engineer's way after a regression, with and without scripts, wide and narrow."""

from __future__ import annotations

import base64
import lzma
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests import web
from tests.axe import faults
from tests.exports import export
from tests.web import MAGIC, Server, server, trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page, Route

pytestmark = pytest.mark.browser
expect.set_options(timeout=60_000)
HOSTILE = "</script><img src=x onerror=alert(1)>"
DROP = """([place, files]) => {
  const transfer = new DataTransfer();
  for (const [name, content] of files)
    transfer.items.add(new File([Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))], name));
  const target = document.querySelector(place);
  for (const kind of ["dragenter", "dragover", "drop"])
    target.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


@dataclass
class Watched:
    """A page and everything it complained about or asked for elsewhere."""

    page: Page
    url: str
    problems: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.problems.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append(f"dialog: {dialog.message}"))
        self.page.on("request", self._note)
        self.page.set_default_timeout(60_000)

    def _note(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.strangers.append(request.url)

    def is_clean(self) -> None:
        assert self.problems == []
        assert self.strangers == []


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the real worker."""
    with server(tmp_path_factory.mktemp("real"), real=True) as running:
        yield running


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose jobs end as the upload says."""
    with server(tmp_path_factory.mktemp("quick"), jobs=1) as running:
        yield running


@pytest.fixture
def watched(page: Page, real: Server) -> Watched:
    return Watched(page, real.url)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory, sample: Callable[[str], Path]) -> Callable[[str], Path]:
    """Unpacks a sample capture: `unpacked("nextn_before.node")` is its SQLite file."""
    folder = tmp_path_factory.mktemp("unpacked")

    def unpack(name: str) -> Path:
        path = folder / f"{name}.sqlite"
        if not path.exists():
            path.write_bytes(lzma.decompress(sample(name).read_bytes()))
        return path

    return unpack


@pytest.fixture(scope="module")
def uploaded(real: Server, sample: Callable[[str], Path]) -> Callable[..., str]:
    """Uploads a sample capture once and gives the id of its finished run."""
    known: dict[str, str] = {}

    def upload(name: str, label: str = "known") -> str:
        if name not in known:
            path = sample(name)
            query = {"name": path.name, "label": label}
            answer = web.put(f"{real.url}/api/runs", params=query, content=path.read_bytes(), timeout=30)
            known[name] = answer.json()["id"]
            assert real.settled(known[name])["state"] == "done"
        return known[name]

    return upload


def drop(page: Page, *paths: Path) -> None:
    files = [[path.name, base64.b64encode(path.read_bytes()).decode()] for path in paths]
    page.evaluate(DROP, ["#drop", files])


def context(browser: Browser, **options: Any) -> BrowserContext:
    return browser.new_context(locale="en-GB", timezone_id="UTC", **options)


def test_from_two_dropped_traces_to_what_changed_and_back_to_an_empty_list(
    watched: Watched, real: Server, unpacked: Callable[[str], Path]
) -> None:
    page = watched.page
    page.goto(real.url)
    drop(page, unpacked("nextn_before.node"), unpacked("nextn_after.node"))
    page.fill("#label", "regressed")
    page.click("text=Analyse")
    expect(page.locator("#job-words")).to_contain_text(re.compile("Waiting|Working|Reading"))
    run_url = page.url.partition("?")[0]
    expect(page.locator("h1")).to_contain_text("Regression")
    page.goto(run_url)
    expect(page.locator("#verdict-title")).to_contain_text("28.3 %")
    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-chart]')].every((chart) => chart.querySelector('.main-svg'))"
    )

    page.click("nav.contents >> text=Findings")
    finding = page.locator("#finding-1")
    expect(finding).to_contain_text("resolve_seq_lens_cpu")
    finding.locator("summary").first.click()
    expect(finding.locator("table").first).to_contain_text("CUPTI_ACTIVITY_KIND")

    page.click(".menu summary")
    with page.expect_download() as started:
        page.click("text=Markdown")
    assert "28.3 %" in started.value.path().read_text()
    assert started.value.suggested_filename == "nextn_before.node.sqlite.report.md"

    page.click("a.strong")
    expect(page.locator("h1")).to_contain_text("Regression")
    page.goto(run_url)
    page.click(".tools .sure summary")
    page.click("text=Delete for good")
    expect(page).to_have_url(f"{real.url}/")
    run_id = run_url.rsplit("/", 1)[-1]
    assert page.locator(f"#run-{run_id}").count() == 0
    watched.is_clean()
    assert web.get(f"{real.url}/api/runs/{run_id}", timeout=20).status_code == 404


def test_the_progress_says_how_much_how_fast_and_how_long(page: Page, quick: Server, tmp_path: Path) -> None:
    page.goto(quick.url)
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 2_000_000}
    session.send("Network.emulateNetworkConditions", slow)
    (tmp_path / "long.sqlite").write_bytes(trace(padding=6 << 20))
    page.set_input_files("#file", tmp_path / "long.sqlite")
    page.click("text=Analyse")
    expect(page.locator("#sending-what")).to_have_text("Uploading long.sqlite")
    rate = re.compile(r"[\d.]+ [KM]iB of 6\.0 MiB, [\d.]+ [KM]iB/s, \d+ s left")
    expect(page.locator("#sending-rate")).to_have_text(rate)
    page.wait_for_function("() => document.getElementById('sending-bar').value > 0.2")
    page.wait_for_url("**/runs/*")


def test_an_upload_can_be_stopped_and_leaves_nothing(page: Page, quick: Server, tmp_path: Path) -> None:
    before = web.get(f"{quick.url}/api/runs", timeout=20).json()["total"]
    page.goto(quick.url)
    session = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 500_000}
    session.send("Network.emulateNetworkConditions", slow)
    (tmp_path / "long.sqlite").write_bytes(trace(padding=6 << 20))
    page.set_input_files("#file", tmp_path / "long.sqlite")
    page.click("text=Analyse")
    page.click("#sending-stop")
    expect(page.locator("#problem")).to_have_text("Stopped.")
    assert web.get(f"{quick.url}/api/runs", timeout=20).json()["total"] == before


def test_what_is_no_trace_is_said_on_the_page(page: Page, quick: Server, tmp_path: Path) -> None:
    page.goto(quick.url)
    (tmp_path / "notes.txt").write_text("hello")
    drop(page, tmp_path / "notes.txt")
    page.click("text=Analyse")
    expect(page.locator("#problem")).to_contain_text("This is not a trace")
    expect(page.locator("text=Analyse")).to_be_enabled()


def test_a_file_that_is_too_long_is_not_even_sent(page: Page, tmp_path: Path) -> None:
    with server(tmp_path / "data", upload_bytes=1000) as running:
        page.goto(running.url)
        (tmp_path / "long.sqlite").write_bytes(trace(padding=5000))
        drop(page, tmp_path / "long.sqlite")
        page.click("text=Analyse")
        expect(page.locator("#problem")).to_contain_text("longer than the 1,000 bytes")


def test_two_files_can_be_swapped_and_three_are_too_many(page: Page, quick: Server, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.sqlite", "b.sqlite", "c.sqlite")]
    for path in paths:
        path.write_bytes(trace())
    page.goto(quick.url)
    drop(page, *paths)
    expect(page.locator("#problem")).to_contain_text("one or two")
    drop(page, *paths[:2])
    page.click("#swap")
    chosen = "['file', 'baseline'].map((id) => document.getElementById(id).files[0].name)"
    assert page.evaluate(chosen) == ["b.sqlite", "a.sqlite"]


def test_the_page_of_a_job_survives_a_reload_and_can_cancel(page: Page, quick: Server) -> None:
    answer = web.put(f"{quick.url}/api/runs?name=slow.sqlite", content=trace("sleep 60"), timeout=20).json()
    page.goto(quick.url + answer["url"])
    expect(page.locator("#job-words")).to_contain_text("Working: load, step 2 of 6. ")
    page.reload()
    expect(page.locator("#job-words")).to_contain_text("Working: load, step 2 of 6. ")
    page.click("text=Cancel")
    expect(page.locator("main")).to_contain_text("was cancelled")


def test_the_way_to_the_baseline_appears_once_it_is_done(page: Page, tmp_path: Path) -> None:
    with server(tmp_path / "data", jobs=2) as running:
        base = web.put(f"{running.url}/api/runs?name=base", content=trace("sleep 6"), timeout=20).json()["id"]
        query = {"name": "head", "baseline": base}
        head = web.put(f"{running.url}/api/runs", params=query, content=trace(), timeout=20).json()["id"]
        running.settled(head)
        page.goto(f"{running.url}/runs/{head}")
        expect(page.locator("#baseline-state")).to_contain_text("base, is running")
        expect(page.locator("a.strong")).to_be_visible()
        expect(page.locator("#baseline-state")).to_be_hidden()


def test_without_scripts_the_form_uploads_both_files_and_the_page_gets_to_the_report(
    browser: Browser, real: Server, unpacked: Callable[[str], Path]
) -> None:
    plain = context(browser, java_script_enabled=False)
    page = plain.new_page()
    page.set_default_timeout(60_000)
    page.goto(real.url)
    page.set_input_files("#file", unpacked("hard_after.graph"))
    page.set_input_files("#baseline", unpacked("hard_before.graph"))
    page.fill("#label", "plain")
    page.click("text=Analyse")
    expect(page.locator("h1.verdict")).to_be_visible()
    page.locator(".tools a").nth(1).click()
    expect(page.locator("#verdict-title")).to_contain_text("The GPU idles")
    page.click(".tools .sure summary")
    page.click("text=Delete for good")
    expect(page).to_have_url(f"{real.url}/")
    plain.close()


def test_at_400_pixels_nothing_sticks_out_and_all_can_be_reached(
    browser: Browser, real: Server, uploaded: Callable[..., str], unpacked: Callable[[str], Path]
) -> None:
    narrow = context(browser, viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True)
    watched = Watched(narrow.new_page(), real.url)
    page = watched.page
    first, second = uploaded("null_host_1.graph"), uploaded("null_host_2.graph")
    for path in (
        "/",
        f"/runs/{first}",
        f"/runs/{first}/timeline",
        f"/diff?base={first}&head={second}",
        "/trend?label=known",
    ):
        page.goto(real.url + path)
        if path.endswith("timeline"):
            page.wait_for_selector("#timeline[data-ready]")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, path
    page.goto(real.url)
    page.set_input_files("#file", unpacked("null_host_3.graph"))
    page.tap("text=Analyse")
    expect(page.locator("#verdict-title")).to_contain_text("The GPU idles")
    page.tap(".tools .sure summary")
    page.tap("text=Delete for good")
    expect(page).to_have_url(f"{real.url}/")
    watched.is_clean()
    narrow.close()


def test_runs_can_be_ticked_and_compared_on_a_phone(
    browser: Browser, real: Server, uploaded: Callable[..., str]
) -> None:
    first, second = uploaded("null_host_1.graph"), uploaded("null_host_2.graph")
    narrow = context(browser, viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True)
    watched = Watched(narrow.new_page(), real.url)
    page = watched.page
    page.goto(f"{real.url}/?search=null_host")
    for side, run_id in (("base", first), ("head", second)):
        page.locator(f"#run-{run_id} .pick").get_by_text(side, exact=True).tap()
        box = page.locator(f"input[name={side}][value='{run_id}']").bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 20
    compare = page.get_by_role("button", name="Compare", exact=True)
    expect(compare).to_be_in_viewport()
    compare.tap()
    expect(page.locator("h1")).to_contain_text("No change")
    expect(page.locator(".tools")).to_contain_text("null_host_2")
    watched.is_clean()
    narrow.close()


def test_the_timeline_loads_the_window_it_shows(watched: Watched, real: Server, uploaded: Callable[..., str]) -> None:
    page = watched.page
    sizes: list[int] = []
    page.on("response", lambda answer: sizes.append(len(answer.body())) if "/window" in answer.url else None)
    page.goto(f"{real.url}/runs/{uploaded('nextn_before.node')}/timeline")
    page.wait_for_selector("#timeline[data-ready='1']")
    expect(page.locator("#timeline-note")).to_contain_text("zoom in")
    page.focus("#timeline-canvas")
    for key in "++++++++++":
        page.keyboard.press(key)
    page.wait_for_selector("#timeline:not([data-ready='1'])")
    page.wait_for_function("() => document.getElementById('timeline-note').textContent === ''")
    canvas = page.locator("#timeline-canvas").bounding_box()
    assert canvas is not None
    for tenth in range(1, 40):
        page.mouse.move(canvas["x"] + canvas["width"] * tenth / 40, canvas["y"] + canvas["height"] - 15)
        if page.locator("#timeline-tip").is_visible():
            break
    expect(page.locator("#timeline-tip")).to_contain_text(re.compile(r"GPU 0, stream \d+, from"))
    page.click("text=Whole capture")
    expect(page.locator("#timeline-range")).to_contain_text("0 ns to")
    assert len(sizes) >= 2
    assert max(sizes) < 2_000_000
    watched.is_clean()


def test_a_finding_leads_to_its_moment_and_the_address_to_what_one_sees(
    watched: Watched, real: Server, uploaded: Callable[..., str]
) -> None:
    page = watched.page
    run_id = uploaded("nextn_before.node")
    page.goto(f"{real.url}/runs/{run_id}")
    row = page.locator("#gaps tr[data-start]").first
    start, end = (int(row.get_attribute(name) or 0) for name in ("data-start", "data-end"))
    row.locator(".moment").click()
    page.wait_for_selector("#timeline[data-ready='1']")
    shown = {name: int(value) for name, value in re.findall(r"(start|end)=(\d+)", page.url)}
    assert shown["start"] <= start < end <= shown["end"]
    assert shown["end"] - shown["start"] <= 4 * max(end - start, 20_000)
    words = page.locator("#timeline-range").inner_text()
    page.reload()
    page.wait_for_selector("#timeline[data-ready='1']")
    expect(page.locator("#timeline-range")).to_have_text(words)
    page.goto(f"{real.url}/runs/{run_id}")
    page.click("#finding-1 .moment")
    page.wait_for_selector("#timeline[data-ready='1']")
    watched.is_clean()


def test_a_name_can_be_searched_kept_and_followed_and_a_range_measured(
    watched: Watched, real: Server, uploaded: Callable[..., str]
) -> None:
    page = watched.page
    page.goto(f"{real.url}/runs/{uploaded('nextn_before.node')}/timeline")
    page.wait_for_selector("#timeline[data-ready='1']")
    page.fill("#timeline-text", "GRAPHLAUNCH")
    page.keyboard.press("Enter")
    expect(page.locator("#timeline-found")).to_have_text("1 of 30")
    expect(page.locator("#timeline-pinned")).to_contain_text("cudaGraphLaunch")
    page.keyboard.press("Enter")
    expect(page.locator("#timeline-found")).to_have_text("2 of 30")
    page.keyboard.press("Shift+Enter")
    expect(page.locator("#timeline-found")).to_have_text("1 of 30")
    page.fill("#timeline-text", "no such kernel")
    page.keyboard.press("Enter")
    expect(page.locator("#timeline-found")).to_have_text("none")
    page.click("text=Whole capture")
    page.click("text=Measure a range")
    box = page.locator("#timeline-canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60, steps=4)
    page.mouse.up()
    sums = page.locator("#timeline-sums")
    expect(sums).to_contain_text("by name")
    expect(sums).to_contain_text("decode_step")
    expect(sums).to_contain_text("GPU 0, stream")
    page.focus("#timeline-canvas")
    page.keyboard.press("Escape")
    expect(sums).to_be_hidden()
    watched.is_clean()


def test_pointing_shows_what_a_bar_is_beside_the_pointer_and_a_click_keeps_it(
    watched: Watched, real: Server, uploaded: Callable[..., str]
) -> None:
    page = watched.page
    page.goto(f"{real.url}/runs/{uploaded('nextn_before.node')}/timeline")
    page.wait_for_selector("#timeline[data-ready='1']")
    box = page.locator("#timeline-canvas").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] * 0.35, box["y"] + 34 + 15 + 8
    page.mouse.move(x, y)
    tip = page.locator("#timeline-tip")
    expect(tip).to_contain_text("decode_step")
    place = tip.bounding_box()
    assert place is not None
    assert abs(place["x"] - x) < 40
    assert abs(place["y"] - y) < 40
    page.mouse.click(x, y)
    page.mouse.move(x, box["y"] + 5)
    expect(page.locator("#timeline-pinned")).to_contain_text("Kept: decode_step")
    watched.is_clean()


WRITTEN = """() => {
  const pen = CanvasRenderingContext2D.prototype, fill = pen.fillRect, write = pen.fillText;
  window.drawn = [];
  pen.fillRect = function (...box) { this.last = box; fill.apply(this, box); };
  pen.fillText = function (text, left, top) {
    const [x, y, wide, tall] = this.last || [0, 0, 0, 0];
    if (y < top && top < y + tall && tall < 40) drawn.push([text, left - x, this.measureText(text).width, wide]);
    write.call(this, text, left, top);
  };
}"""


def test_names_stay_inside_their_bars_and_the_legend_explains_every_colour(
    page: Page, real: Server, tmp_path: Path, hostile_capture: Callable[[Path, str], Path]
) -> None:
    path = hostile_capture(tmp_path / "wide.sqlite", "W" * 40)
    answer = web.put(f"{real.url}/api/runs?name=wide.sqlite", content=path.read_bytes(), timeout=30).json()
    assert real.settled(answer["id"])["state"] == "done"
    page.add_init_script(f"({WRITTEN})()")
    page.goto(f"{real.url}{answer['url']}/timeline")
    page.wait_for_selector("#timeline[data-ready='1']")
    names = page.evaluate("drawn.filter(([text]) => text.startsWith('W'))")
    assert any(text.endswith("…") for text, *_ in names)
    assert all(inset >= 0 and inset + length <= wide for _, inset, length, wide in page.evaluate("drawn"))
    assert all(len(text) >= 5 for text, *_ in names)
    legend = page.get_by_role("list", name="Colours").get_by_role("listitem")
    assert {"NVTX range", "API call", "kernel or whole graph", "idle: host late"} <= set(legend.all_inner_texts())
    fills = page.evaluate(
        "[...document.querySelectorAll('#timeline-legend rect')].map((one) => getComputedStyle(one).fill)"
    )
    assert len(set(fills)) == len(fills) == legend.count()


def test_groups_of_runs_ticked_in_the_list_are_compared(
    watched: Watched, real: Server, uploaded: Callable[..., str]
) -> None:
    first, second, third = (uploaded(f"null_host_{number}.graph") for number in (1, 2, 3))
    page = watched.page
    page.goto(f"{real.url}/?search=null_host")
    for side, run_id in (("base", first), ("base", second), ("head", third)):
        page.check(f"input[name={side}][value='{run_id}']")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("h1")).to_contain_text("No change")
    expect(page.locator(".tools")).to_contain_text("null_host_2")
    watched.is_clean()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_comparison_has_the_colours_of_the_other_pages(
    browser: Browser, real: Server, uploaded: Callable[..., str], theme: str
) -> None:
    first, second = uploaded("null_host_1.graph"), uploaded("null_host_2.graph")
    there = context(browser, color_scheme=theme)
    page = there.new_page()

    def colours(path: str) -> list[str]:
        page.goto(real.url + path)
        link = "getComputedStyle(document.querySelector('a[href^=\"/runs/\"]')).color"
        body = (
            "['backgroundColor', 'color', 'fontFamily', 'fontSize'].map((one) => getComputedStyle(document.body)[one])"
        )
        return list(page.evaluate(f"[{link}, ...{body}]"))

    assert colours(f"/diff?base={first}&head={second}") == colours("/")
    there.close()


def test_the_trace_is_handed_to_perfetto_by_message_and_to_nobody_else(
    browser: Browser, real: Server, uploaded: Callable[..., str]
) -> None:
    there = context(browser)
    there.route("https://ui.perfetto.dev/**", _perfetto)
    page = there.new_page()
    page.goto(f"{real.url}/runs/{uploaded('nextn_before.node')}")
    with page.expect_popup() as opened:
        page.click("text=Open in Perfetto")
    perfetto = opened.value
    perfetto.wait_for_function("() => window.given", timeout=20_000)
    given = perfetto.evaluate(
        "({ title: given.perfetto.title, head: [...new Uint8Array(given.perfetto.buffer).slice(0, 2)] })"
    )
    assert given["head"] == [0x1F, 0x8B]
    assert "nextn_before.node" in given["title"]
    there.close()


def _perfetto(route: Route) -> None:
    script = """addEventListener("message", (event) => {
      if (event.data === "PING") event.source.postMessage("PONG", event.origin);
      else window.given = event.data;
    });"""
    route.fulfill(content_type="text/html", body=f"<title>stands in for Perfetto</title><script>{script}</script>")


def test_script_in_names_stays_text_in_the_report_and_on_the_timeline(
    watched: Watched, real: Server, tmp_path: Path, hostile_capture: Callable[[Path, str], Path]
) -> None:
    path = hostile_capture(tmp_path / "x.sqlite", HOSTILE)
    query = {"name": HOSTILE, "label": HOSTILE, "commit": HOSTILE}
    answer = web.put(f"{real.url}/api/runs", params=query, content=path.read_bytes(), timeout=30).json()
    said = real.settled(answer["id"])
    assert said["state"] == "done", said
    page = watched.page
    for address in (
        answer["url"],
        f"{answer['url']}/timeline",
        "/",
        f"/trend?label={HOSTILE}",
        f"/diff?base={answer['id']}&head={answer['id']}",
    ):
        page.goto(real.url + address)
        if address.endswith("timeline"):
            page.wait_for_selector("#timeline[data-ready]")
        assert page.locator("img").count() == 0
        assert page.get_by_text(HOSTILE).count() or address.endswith("timeline"), address
    page.goto(f"{real.url}/api/runs/{answer['id']}/report.html")
    assert page.locator("img").count() == 0
    watched.is_clean()


@pytest.fixture(scope="session")
def hostile_capture() -> Callable[[Path, str], Path]:
    """Writes an export whose kernel, NVTX range and process are called by a name."""
    from bubblefinder.trace.drawn import draw

    def write(path: Path, name: str) -> Path:
        steps = 6
        picture = "\n".join(
            (
                "nvtx     | " + "[x          ]..." * steps,
                "api      | " + "GG...C.........." * steps,
                "gpu0 s7  | " + "..aaabb........." * steps,
                "gpu0 s14 | " + "........C......." * steps,
                "G = graph 5 a b",
                "C = copy DtoH 8 pageable via cudaMemcpy",
            )
        )
        drawn = draw(picture)
        renamed = {number: name if text in {"a", "b"} else text for number, text in drawn.names.items()}
        from dataclasses import replace

        import polars as pl

        return export(replace(drawn, names=renamed, nvtx=drawn.nvtx.with_columns(text=pl.lit(name))), path)

    return write


@pytest.mark.parametrize("where", ["list", "run", "timeline", "diff", "trend", "server", "login", "error"])
def test_the_pages_can_be_used_by_everybody(page: Page, real: Server, uploaded: Callable[..., str], where: str) -> None:
    first, second = uploaded("null_host_1.graph"), uploaded("null_host_2.graph")
    if where == "server":
        put = web.put(f"{real.url}/api/runs", params={"name": "no.sqlite"}, content=MAGIC + b"broken")
        assert real.settled(put.json()["id"])["state"] == "failed"
    paths = {
        "list": "/", "run": f"/runs/{first}", "timeline": f"/runs/{first}/timeline",
        "diff": f"/diff?base={first}&head={second}", "trend": "/trend?label=known",
        "server": "/server", "login": "/login", "error": "/nowhere",
    }  # fmt: skip
    page.goto(real.url + paths[where])
    if where == "timeline":
        page.wait_for_selector("#timeline[data-ready]")
    if where == "server":
        expect(page.get_by_role("region", name="Table of failures")).to_be_visible()
    assert faults(page) == []


def test_signing_in_through_the_page(page: Page, tmp_path: Path) -> None:
    with server(tmp_path / "data", token="open sesame, please") as running:  # noqa: S106 - made up
        page.goto(f"{running.url}/")
        expect(page).to_have_url(f"{running.url}/login")
        page.fill("input[name=token]", "wrong")
        page.click("button")
        expect(page.get_by_role("alert")).to_have_text("That is not the token.")
        page.fill("input[name=token]", "open sesame, please")
        page.click("button")
        expect(page.locator("h1")).to_contain_text("Drop a trace")
