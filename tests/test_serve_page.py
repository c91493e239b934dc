"""docs/serve.md names every option, address and status that there is, with the defaults that are true."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import pytest

from bubblefinder.cli.serve import serve
from bubblefinder.web import api
from bubblefinder.web.limits import GIB, Limits

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.routing import Route

OPTIONS = inspect.signature(serve).parameters


@pytest.fixture(scope="session")
def page(root: Path) -> str:
    return (root / "docs" / "serve.md").read_text()


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_has_a_line_with_its_default(page: str, name: str) -> None:
    (line,) = re.findall(rf"^\| `--{name.replace('_', '-')}\b.*$", page, re.MULTILINE)
    default = OPTIONS[name].default
    if isinstance(default, int | float | str) and not isinstance(default, bool):
        assert line.split("|")[2].strip() == str(default)


def test_the_options_default_to_the_limits_of_the_code() -> None:
    stated = {name: parameter.default for name, parameter in OPTIONS.items()}
    code = Limits()
    assert stated["max_upload"] * GIB == code.upload_bytes
    assert stated["max_disk"] * GIB == code.disk_bytes
    assert stated["memory"] * GIB == code.job_bytes
    assert stated["keep"] * 86_400 == code.keep_s
    assert stated["jobs"] == code.jobs


def test_the_limits_without_an_option_are_those_of_the_code(page: str) -> None:
    code = Limits()
    assert f"ends after {code.job_s / 60:.0f} minutes" in page
    assert f"{code.archive_files:,} files" in page
    assert f"unpack to more than {code.unpacked_bytes // GIB} GiB" in page
    assert f"{code.waiting} runs may wait" in page


@pytest.mark.parametrize("route", api.ROUTES, ids=lambda route: route.name)
def test_every_address_of_the_api_is_on_the_page(page: str, route: Route) -> None:
    path = route.path.replace("{run_id}", "ID").replace("{suffix:path}", "json")
    method = next(iter((route.methods or set()) - {"HEAD"}))
    assert re.search(rf"\| `{method} {re.escape(path)}[`\[?]", page), f"{method} {path}"


def test_every_status_that_refuses_is_on_the_page(page: str, root: Path) -> None:
    sources = [path.read_text() for path in (root / "src" / "bubblefinder" / "web").glob("*.py")]
    used = {status for source in sources for status in re.findall(r"RefusedError\(\s*(\d{3})", source)}
    (sentence,) = re.findall(r"An error is .*?\n\n", page, re.DOTALL)
    assert used <= set(re.findall(r"\d{3}", sentence))
