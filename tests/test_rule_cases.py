"""Every rule does on its drawn timelines what its case file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubblefinder.rules.cases import Case, complaints, read_cases, untested
from bubblefinder.rules.packs import load_packs

FILES = {path.stem: read_cases(path) for path in sorted((Path(__file__).parent / "cases").glob("*.toml"))}
CASES = [pytest.param(file.rule, case, id=f"{file.rule}: {case.name}") for file in FILES.values() for case in file.case]


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_case(rule: str, case: Case) -> None:
    assert complaints(rule, case, load_packs()) == []


def test_every_rule_has_a_case_file_of_its_name() -> None:
    assert untested([rule.id for rule in load_packs().rules], FILES.values()) == []
    assert {name: file.rule for name, file in FILES.items()} == {name: name for name in FILES}
