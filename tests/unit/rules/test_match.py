from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from bubblefinder.causes.facts import SiteFacts
from bubblefinder.rules.match import CONDITIONS, checks_of, holds, names_code
from bubblefinder.rules.subjects import SUBJECTS

SITE = SiteFacts(
    gpu=0,
    process=1,
    sites=(3,),
    api="cudaMemcpyAsync",
    copy_kind="DtoH",
    memory_kind="pageable",
    bytes=8,
    nvtx_stack=("decode_step", "FutureMap.resolve_seq_lens_cpu"),
    copies_after=("HtoD", "HtoD"),
    private_stream=False,
    steps=10,
    steps_affected=10,
    occurrences=10,
)


def passes(**tests: Any) -> bool:
    return holds(CONDITIONS["wait"].model_validate(tests), SITE)


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ({"copy_kind": "DtoH"}, True),
        ({"copy_kind": "Dto"}, False),
        ({"copy_kind": ["HtoD", "DtoH"]}, True),
        ({"copy_kind": []}, False),
        ({"api": {"matches": "^cudaMemcpy", "lacks": "Async"}}, False),
        ({"api": {"one_of": ["cudaMemcpyAsync"], "matches": "Peer"}}, False),
        ({"bytes": 8}, True),
        ({"bytes": {"at_most": 8}}, True),
        ({"bytes": {"at_least": 9}}, False),
        ({"bytes": {"at_least": 1, "at_most": 7}}, False),
        ({"nvtx_stack": "resolve_seq_lens"}, True),
        ({"nvtx_stack": {"none": "resolve"}}, False),
        ({"copies_after": {"at_least": 2, "at_most": 2}}, True),
        ({"copies_after": {"at_least": 3}}, False),
        ({"private_stream": False}, True),
        ({"private_stream": True}, False),
        ({"copy_kind": "DtoH", "bytes": 9}, False),
    ],
)
def test_a_test_on_a_field(tests: dict[str, object], expected: object) -> None:
    assert passes(**tests) is expected


def test_an_unknown_value_passes_no_test() -> None:
    assert not passes(event_before=False)
    assert not passes(nvtx={"lacks": "x"})
    assert not passes(recoverable_ns={"at_most": 1e12})


@pytest.mark.parametrize(
    "tests",
    [
        {"copykind": "DtoH"},
        {"bytes": {"atmost": 1}},
        {"bytes": "many"},
        {"nvtx": {"matches": "("}},
        {"nvtx": {}},
        {"gpu": 0},
    ],
)
def test_what_is_no_test_is_refused(tests: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        passes(**tests)


def test_only_tests_on_names_in_the_code_count_as_a_name() -> None:
    wait = CONDITIONS["wait"]
    assert names_code(wait.model_validate({"nvtx_stack": "plan"}))
    assert names_code(wait.model_validate({"frames": "plan", "bytes": 8}))
    assert not names_code(wait.model_validate({"kernels_before": "DeviceReduce", "thread": "main"}))


@pytest.mark.parametrize("kind", SUBJECTS)
def test_every_condition_says_what_its_field_means(kind: str) -> None:
    for name, field in CONDITIONS[kind].model_fields.items():
        assert field.description, name


def test_tests_by_field() -> None:
    conditions = CONDITIONS["wait"].model_validate({"bytes": 8})
    assert checks_of(conditions)["bytes"].model_dump() == {"at_least": 8.0, "at_most": 8.0}
