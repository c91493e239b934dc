"""Every rule does on its drawn timelines what its case file says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bubblefinder.rules.cases import Case, complaints, read_cases, untested
from bubblefinder.rules.packs import load_packs
from tests.samples import report

FILES = {path.stem: read_cases(path) for path in sorted((Path(__file__).parent / "cases").glob("*.toml"))}
CASES = [pytest.param(file.rule, case, id=f"{file.rule}: {case.name}") for file in FILES.values() for case in file.case]


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_case(rule: str, case: Case) -> None:
    assert complaints(rule, case, load_packs()) == []


def test_every_rule_has_a_case_file_of_its_name() -> None:
    assert untested([rule.id for rule in load_packs().rules], FILES.values()) == []
    assert {name: file.rule for name, file in FILES.items()} == {name: name for name in FILES}


VERIFIED = [(rule.id, one.capture) for rule in load_packs().rules for one in rule.fired_on]


@pytest.mark.parametrize(("rule", "capture"), VERIFIED, ids=[f"{rule} {capture}" for rule, capture in VERIFIED])
def test_a_verified_rule_fires_on_the_capture_that_it_names(rule: str, capture: str) -> None:
    fired = {word for finding in report(capture).findings for word in (finding.rule, *finding.also_matches)}
    assert rule in fired


def test_an_engines_rules_are_verified_on_that_engine() -> None:
    engines = {"sglang": "SGLang", "flashinfer": "FlashInfer", "vllm": "vLLM", "tensorrt-llm": "TensorRT-LLM"}
    for pack in load_packs().packs:
        for rule in pack.rule:
            if pack.pack in engines:
                assert all(one.program.startswith(engines[pack.pack]) for one in rule.fired_on), rule.id


def test_the_engines_page_lists_the_rules_that_no_capture_has_shown() -> None:
    page = (Path(__file__).parent.parent / "docs" / "engines.md").read_text()
    listed = set(re.findall(r"\b[A-Z]{2,5}[0-9]{3}\b", page[page.index("| not captured |") :]))
    engines = {"sglang", "flashinfer", "vllm", "tensorrt-llm"}
    rules = [rule for pack in load_packs().packs if pack.pack in engines for rule in pack.rule]
    assert listed == {rule.id for rule in rules if rule.status != "verified"}
