"""Numbers as words."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.units import (
    code_name,
    count,
    duration,
    kernel_name,
    milliseconds,
    parse_time,
    plural,
    printable,
    share,
)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "–"),
        (0, "0 ns"),
        (999, "999 ns"),
        (1_500, "1.50 us"),
        (12_340, "12.3 us"),
        (999_600, "1.00 ms"),
        (8_907_353, "8.91 ms"),
        (-1_670_000, "-1.67 ms"),
        (1_500_000_000, "1.50 s"),
    ],
)
def test_duration_has_three_digits_and_a_unit(ns: float | None, text: str) -> None:
    assert duration(ns) == text


def test_unknown_is_a_dash_everywhere_and_never_zero() -> None:
    assert [milliseconds(None), share(None), count(None)] == ["–", "–", "–"]
    assert [milliseconds(0), share(0.0), count(0)] == ["0.000", "0.0 %", "0"]


def test_counts_show_a_fraction_only_where_there_is_one() -> None:
    assert [count(1676.0), count(2.5), count(1686.1), count(12_000_000)] == ["1,676", "2.5", "1,686", "12,000,000"]


def test_nouns_agree() -> None:
    assert [plural(1, "step"), plural(3, "step"), plural(2, "copy", "copies")] == ["1 step", "3 steps", "2 copies"]


@pytest.mark.parametrize(
    ("text", "ns"),
    [("1.2s", 1_200_000_000), ("300ms", 300_000_000), ("5us", 5_000), ("7 ns", 7), ("1.5", 1_500_000_000), ("", None)],
)
def test_times_take_units(text: str, ns: int | None) -> None:
    assert parse_time(text) == ns


@pytest.mark.parametrize("text", ["-1s", "1m", "s", "1e3", "nan"])
def test_what_is_no_time_is_refused(text: str) -> None:
    assert parse_time(text) is None


def test_names_from_captures_lose_control_characters_and_length() -> None:
    assert printable("a\x1b[31mb\u202ec") == "a\N{REPLACEMENT CHARACTER}[31mb\N{REPLACEMENT CHARACTER}c"
    assert printable("x" * 5_000, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::<unnamed>::norm<c10::BFloat16, float, (bool)0>(int, T1 const*)", "at::native::norm"),
        (
            "ncclDevKernel_AllReduce_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
            "ncclDevKernel_AllReduce_RING_LL",
        ),
        ("void <unnamed>::all_reduce_kernel<<unnamed>::AllReducePushImpl<__nv_bfloat16>>(T1)", "all_reduce_kernel"),
        ("a < b", "a < b"),
        ("a > b(c)", "a > b"),
        ("f<(1)>(g)<h", "f<h"),
        ("void f<a(b>c)", "fc)"),
    ],
)
def test_a_kernels_arguments_are_left_out(name: str, short: str) -> None:
    assert kernel_name(name) == short


@given(
    st.recursive(
        st.text("ab: ", max_size=3),
        lambda inner: st.lists(st.one_of(inner, inner.map("<{}>".format), inner.map("({})".format)), max_size=4).map(
            "".join
        ),
        max_leaves=12,
    )
)
def test_of_balanced_brackets_nothing_is_left(name: str) -> None:
    shorter = name
    while (once := re.sub(r"<[^<>]*>|\([^()]*\)", "", shorter)) != shorter:
        shorter = once
    assert kernel_name(name) == shorter.removeprefix("void ").replace("::::", "::").strip().removeprefix("::")


@pytest.mark.parametrize("name", ["k" + "<" * 200_000 + ">" * 200_000, "(" * 400_000, "<(" * 100_000 + ">)" * 100_000])
def test_a_name_is_shortened_in_one_pass(name: str) -> None:
    begun = time.process_time()
    kernel_name(name)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("sglang.srt.managers.overlap_utils.FutureMap.publish", "FutureMap.publish"),
        ("scheduler.run_batch", "scheduler.run_batch"),
        ("gpu_model_runner: preprocess", "gpu_model_runner: preprocess"),
        ("", ""),
    ],
)
def test_a_functions_module_is_left_out(name: str, short: str) -> None:
    assert code_name(name) == short
