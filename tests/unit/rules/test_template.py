from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bubblefinder.causes.facts import SiteFacts
from bubblefinder.rules.template import bare, fill, names, written

SITE = SiteFacts(gpu=0, process=1, sites=(1,), api="cudaMemcpyAsync", steps=4, steps_affected=4, occurrences=4)


def site(**values: Any) -> SiteFacts:
    return replace(SITE, **values)


def test_a_field_is_written_with_its_unit() -> None:
    filled = fill(
        "{bubble_p50_ns}, {bubble_share}, {bytes}, {per_step_count}",
        site(bubble_p50_ns=1_670_000.0, bubble_share=0.187, bytes=8, per_step_count=1.0),
    )
    assert filled == "1.67 ms, 18.7 %, 8 B, 1"


def test_an_optional_piece_goes_when_a_field_in_it_is_unknown() -> None:
    title = "Blocking read[ after {after_role}]"
    assert fill(title, site(after_role="verify")) == "Blocking read after verify"
    assert fill(title, site()) == "Blocking read"


def test_an_empty_list_counts_as_unknown() -> None:
    assert fill("x[ in {nvtx_stack}]", site()) == "x"
    assert fill("x[ in {nvtx_stack}]", site(nvtx_stack=("step", "verify"))) == "x in step, verify"


def test_an_unknown_field_outside_brackets_is_called_unknown() -> None:
    assert fill("in {nvtx}", site()) == "in unknown"


def test_names_from_a_capture_are_data() -> None:
    assert fill("in {nvtx}", site(nvtx="{api}[x]\x1b[31m")) == "in {api}[x]\N{REPLACEMENT CHARACTER}[31m"


def test_fields_of_a_text() -> None:
    assert names("{a}[ b {c}]") == ["a", "c"]


def test_a_list_of_rules_shows_titles_without_their_fields() -> None:
    assert bare("{nodes} nodes[ in {role}]") == "… nodes"


def test_kernels_are_written_without_arguments_and_once() -> None:
    names = ("void cub::DeviceReduce<int>(int)", "void cub::DeviceReduce<long>(long)")
    assert fill("{kernels_before}", site(kernels_before=names)) == "cub::DeviceReduce"


@pytest.mark.parametrize(("value", "said"), [(15.5, "15 to 16"), (15.0, "15"), (0.5, "0 to 1")])
def test_a_median_between_two_numbers_of_kernels_is_said_as_both(value: float, said: str) -> None:
    assert written("glue_kernels", value) == said
    assert written("per_step_count", 1.5) == "1.5"
