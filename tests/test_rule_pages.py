"""The pages in docs/rules and the schemas in docs/schema that are made from the packs and the cases."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

from bubblefinder.rules.cases import CaseFile
from bubblefinder.rules.config import Config
from bubblefinder.rules.model import Pack
from bubblefinder.rules.packs import schema
from bubblefinder.rules.shipped import shipped
from bubblefinder.rules.suggest import read_toml
from tests.rule_pages import pages

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases"


def test_no_page_is_left_over() -> None:
    found = {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "rules").glob("*.md")}
    assert found == {page for page in pages() if page.startswith("docs/rules/")}


@pytest.mark.parametrize("pack", sorted(shipped().glob("*.toml")), ids=lambda path: path.name)
def test_editors_accept_what_the_tool_accepts(pack: Path) -> None:
    name = "kernels-1.json" if pack.name == "kernels.toml" else "rules-1.json"
    jsonschema.validate(read_toml(pack), schema(name))


def test_editors_refuse_what_the_tool_refuses() -> None:
    pack = read_toml(shipped() / "core.toml")
    pack["rule"][0]["wait"][0]["copy_kid"] = "DtoH"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(pack, schema("rules-1.json"))


def test_the_guide_shows_rules_cases_and_settings_that_work() -> None:
    guide = (ROOT / "docs" / "rule-packs.md").read_text()
    rule, functions, cases, settings = (
        tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    )
    assert Pack.model_validate(rule | functions).functions
    CaseFile.model_validate(cases)
    Config.model_validate(settings)
