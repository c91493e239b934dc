"""Fixtures every test may use, and the two rules of a run: the terminal is pinned, and nothing is skipped in CI."""

from __future__ import annotations

import faulthandler
import gc
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # every processor has a worker of its own
os.environ.pop("COLUMNS", None)  # the workers' own: readline, which pytest loads, had set it for them

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import settings

from bubblefinder.memory import collect_seldom
from tests import real_nsys as real
from tests import samples

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from playwright.sync_api import Browser, Page

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

ROOT = Path(__file__).parent.parent
UNITS = ROOT / "tests" / "unit"
IN_CI = bool(os.environ.get("CI"))
ENDED_IN_S = 60
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# How many examples a law is held to: a few on every change, many at night.
for _profile, _examples in (("house", 5), ("nightly", 300)):
    settings.register_profile(_profile, deadline=None, max_examples=_examples, derandomize=IN_CI)
settings.load_profile("house")


def _refuse_skip(report: Report) -> Report:
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects without looking for garbage: all that is made stays, and need not be looked at again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        collect_seldom()  # as the command line does


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Watches over what is torn down after a failure as well: pytest lets go of a test's time there."""
    seconds = float(item.config.getini("faulthandler_timeout"))
    faulthandler.dump_traceback_later(seconds, file=item.config.stash[fault_handler_stderr_fd_key], exit=True)
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Lets a process that can't end say where, and end: what holds it then are threads and what runs at exit."""
    faulthandler.dump_traceback_later(ENDED_IN_S, file=sys.__stderr__ or 2, exit=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks browser tests and runs them last: while Playwright is up, an event loop occupies the main thread.

    Workers take files in an order of their own, so `make tests` runs browser tests by themselves. Coverage is what the
    tests of modules reach: watching the others, which take most of the time, too would make it half as long again.
    """
    opens_browser = {item: "browser" in getattr(item, "fixturenames", ()) for item in items}
    for item, opens in opens_browser.items():
        if opens:
            item.add_marker("browser")
        if not item.path.is_relative_to(UNITS):
            item.add_marker("no_cover")
    items.sort(key=opens_browser.__getitem__)


@pytest.fixture(autouse=True)
def _pinned_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    os.unsetenv("COLUMNS")  # readline, which pytest loads, sets it for processes without Python's knowing
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERMINAL_WIDTH", "100")


@pytest.fixture(scope="session", autouse=True)
def _shared_samples(tmp_path_factory: pytest.TempPathFactory) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        samples.shared = tmp_path_factory.getbasetemp().parent / "samples"


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the source tree."""
    return ROOT


@pytest.fixture(scope="session")
def sample() -> Callable[[str], Path]:
    """Finds a sample capture by its name: `sample("nextn_before.node")`."""

    return samples.path


@pytest.fixture(scope="module")
def read_once() -> Iterator[None]:
    """Lets the commands of a module's tests read and analyse each file once; what they are asked is worked out anew."""
    with samples.read_once():
        yield


@pytest.fixture(scope="session")
def real_nsys() -> Path:
    """The command of the real Nsight Systems 2023.4; CI fetches it, elsewhere `make nsys` does."""
    if IN_CI:
        try:
            return real.fetch()
        except real.UnavailableError as error:
            pytest.fail(f"Nsight Systems 2023.4 could not be fetched from Debian's non-free component: {error}")
    if not real.COMMAND.exists():
        pytest.skip("the real Nsight Systems isn't here; `make nsys` fetches it")
    return real.COMMAND


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium, started once."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None and IN_CI:
        pytest.fail("Chromium is missing, which `make system-deps` installs in CI")
    if chromium is None:
        pytest.skip("Chromium is not installed; `make system-deps` says how")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page that reaches nothing but this machine."""
    context = browser.new_context(locale="en-GB", timezone_id="UTC")
    context.route(re.compile(r"^(?!http://127\.0\.0\.1|file:|data:|blob:)"), lambda route: route.abort())
    yield context.new_page()
    context.close()
