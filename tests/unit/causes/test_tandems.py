from __future__ import annotations

import numpy as np

from bubblefinder.causes.tandems import SpanKernels, Tandem, find_tandems

US = 1_000
SMALL_NS = 6 * US


def kernels(picture: str, spans: int = 1) -> SpanKernels:
    """Kernels of one letter each, their length in microseconds its repetition; a dot is a microsecond of idle."""
    rows: list[list[int]] = []
    names = sorted(set(picture))
    now = 0
    for span in range(spans):
        for number, letter in enumerate(picture):
            now += US
            if letter == ".":
                continue
            if number and picture[number - 1] == letter:
                rows[-1][3] = now
            else:
                rows.append([span, 7, now - US, now, names.index(letter)])
    span, stream, starts, ends, name = np.array(rows).T
    return SpanKernels(span, stream, starts, ends, name, names, spans)


def test_fusing_a_tandem_saves_at_most_the_gap_and_the_shorter_kernel() -> None:
    found = find_tandems(kernels("aaa..b.cccccccc." * 5), SMALL_NS, 0)
    assert found == (Tandem("a", "b", 5, 5 * 3 * US),)


def test_what_the_profiler_adds_to_a_kernel_is_not_there_to_be_saved() -> None:
    (found,) = find_tandems(kernels("aaa..b.cccccccc." * 5), SMALL_NS, 400)
    assert found.saved_ns == 5 * (3 * US - 400)


def test_no_kernel_is_fused_twice() -> None:
    (found,) = find_tandems(kernels("aa..b." * 8), SMALL_NS, 0)
    assert (found.first, found.second, found.count) == ("a", "b", 8)
    (same,) = find_tandems(kernels("a." * 9), SMALL_NS, 0)
    assert (same.count, same.saved_ns) == (4, 4 * 2 * US)


def test_counts_are_those_of_one_span() -> None:
    (found,) = find_tandems(kernels("aaa..b.cccccccc." * 5, spans=3), SMALL_NS, 0)
    assert (found.count, found.saved_ns) == (5, 5 * 3 * US)


def test_what_comes_seldom_or_stands_beside_a_long_kernel_is_no_tandem() -> None:
    assert find_tandems(kernels("aaa..b.cccccccc." * 3), SMALL_NS, 0) == ()
    assert find_tandems(kernels("a.cccccccc." * 9), SMALL_NS, 0) == ()


def test_what_waits_for_something_else_is_no_tandem() -> None:
    assert find_tandems(kernels("a......b......." * 9), SMALL_NS, 0) == ()
