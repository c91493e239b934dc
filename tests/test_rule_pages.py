"""The pages in docs/rules and the schemas in docs/schema are made from the packs and the cases.

Run this file to write them: ``python tests/test_rule_pages.py``.
"""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from bubblefinder.rules.cases import CaseFile, read_cases
from bubblefinder.rules.config import Config
from bubblefinder.rules.model import Pack
from bubblefinder.rules.packs import SCHEMAS, load_packs, schema, shipped
from bubblefinder.rules.suggest import read_toml
from tests.rule_pages import fields_page, index, written_page

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases"


@cache
def pages() -> dict[str, str]:
    packs = load_packs()
    made = {"docs/rules/README.md": index(packs), "docs/rules/fields.md": fields_page()}
    for pack in packs.packs:
        for rule in pack.rule:
            path = CASES / f"{rule.id}.toml"
            cases = read_cases(path).case if path.exists() else ()
            made[f"docs/rules/{rule.id}.md"] = written_page(pack, rule, cases)
    for name in SCHEMAS:
        made[f"docs/schema/{name}"] = written(schema(name))
    made["docs/schema/cases-1.json"] = written(CaseFile.model_json_schema())
    made["docs/schema/config-1.json"] = written(Config.model_json_schema())
    return made


def written(document: object) -> str:
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("page", sorted(pages()))
def test_the_page_is_up_to_date(page: str) -> None:
    told = "stale: run `python tests/test_rule_pages.py`"
    assert (ROOT / page).exists(), told
    assert (ROOT / page).read_text() == pages()[page], told


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


if __name__ == "__main__":
    for name, text in pages().items():
        (ROOT / name).write_text(text)
