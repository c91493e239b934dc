from __future__ import annotations

import re

import pytest
from jinja2 import UndefinedError

from bubblefinder.web.render import HERE, STATIC, environment, moment


def test_moments_are_in_utc_and_unknown_is_a_dash() -> None:
    assert moment(0) == "1970-01-01 00:00"
    assert moment(None) == "–"


def test_a_template_escapes_and_refuses_names_it_was_not_given() -> None:
    made = environment()
    assert made.from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"
    with pytest.raises(UndefinedError):
        made.from_string("{{ x }}").render()


def test_only_what_this_program_rendered_itself_is_put_on_a_page_unescaped() -> None:
    raw = {
        (path.name, one.strip())
        for path in (HERE / "templates").iterdir()
        for one in re.findall(r"\{\{([^}|]*)\|\s*safe", path.read_text())
    }
    assert raw == {("run.html", "body"), ("diff.html", "body")}


def test_no_template_has_a_script_or_a_handler_of_its_own() -> None:
    for path in (HERE / "templates").iterdir():
        page = path.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)", page), path.name
        assert not re.search(r"\son[a-z]+=", page), path.name
        assert "style=" not in page, path.name


def test_no_script_writes_html_or_runs_text() -> None:
    for path in STATIC.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", path.read_text()
        ), path.name
