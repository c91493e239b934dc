from __future__ import annotations

import pytest
from pydantic import ValidationError

from bubblefinder.rules.cases import Case, CaseFile, complaints, picture, untested
from bubblefinder.rules.packs import load_packs

READ = """
nvtx    | [decode_step                           ]
api     | D.V.CCCCCCCCCCCCCCCCCCCCCS...............
gpu0 s7 | DDDDDVVVVVVVVVVVVVVVVVVVC...............
D = graph 1
V = graph 2
C = copy DtoH 8 pageable
S = cudaStreamSynchronize s7
"""


def case(**values: object) -> Case:
    return Case.model_validate({"name": "x", "why": "x", "fires": True, "timeline": READ, "repeat": 6} | values)


def test_a_picture_is_repeated_track_by_track() -> None:
    drawn = picture(case(timeline="api | A.\ngpu0 s7 | .A..\nA = kernel x | y", repeat=2))
    assert drawn == "api | A.  A.  \ngpu0 s7 | .A...A..\nA = kernel x | y"


def test_a_case_that_is_as_it_should_be() -> None:
    assert complaints("CUDA001", case(severity="high", confidence="low"), load_packs()) == []
    assert complaints("CUDA003", case(headline="CUDA001"), load_packs()) == []
    assert complaints("SGL001", case(fires=False), load_packs()) == []


@pytest.mark.parametrize(
    ("rule", "values", "told"),
    [
        ("SGL001", {}, "it should fire"),
        ("CUDA001", {"fires": False}, "it should not fire"),
        ("CUDA003", {}, "CUDA003 should be the finding"),
        ("CUDA001", {"severity": "low"}, "severity should be low"),
        ("CUDA001", {"confidence": "high"}, "confidence should be high"),
        ("SGL001", {"fires": False, "headline": "TORCH001"}, "TORCH001 should be the finding"),
    ],
)
def test_a_case_that_is_not(rule: str, values: dict[str, object], told: str) -> None:
    lines = complaints(rule, case(**values), load_packs())
    assert any(told in line and "found: CUDA001 high/low" in line for line in lines)


@pytest.mark.parametrize(
    "values",
    [{"fires": False, "severity": "high"}, {"headline": "CUDA001", "severity": "high"}, {"repeat": 0}, {"fire": True}],
)
def test_a_case_that_contradicts_itself_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        case(**values)


def test_a_rule_needs_a_case_of_each_kind() -> None:
    with pytest.raises(ValidationError, match="one in which it must not"):
        CaseFile(rule="OUR001", case=(case(),))


def test_rules_without_a_case_file() -> None:
    file = CaseFile(rule="OUR001", case=(case(), case(fires=False)))
    assert untested(["OUR001", "OUR002"], [file]) == ["OUR002"]
