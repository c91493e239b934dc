"""What a verdict says of waits in a row: who they are, and what they give together."""

from __future__ import annotations

from dataclasses import replace

from bubblefinder.report.found import ChainLink, Predicted, WaitChainReport
from bubblefinder.report.row_of_waits import row_words, together_words

JOINT = Predicted(
    recoverable_ns=1_600_000,
    step_after_ns=6_400_000,
    range_ns=[6_300_000, 6_500_000],
    recoverable_range_ns=[1_400_000, 1_900_000],
    bound_after="GPU",
)
PLAN = ChainLink(rule="FI001", title="plan() reads", recoverable_ns=50_000, in_turn_ns=600_000, in_turn_range_ns=[5, 9])
CHAIN = WaitChainReport(
    gpu=0,
    pid=1,
    step_ns=8_000_000,
    joint=JOINT,
    half_work=JOINT,
    both=JOINT,
    links=[
        ChainLink(rule="SGL001", title="Lengths (resolve)", recoverable_ns=240_000, in_turn_ns=240_000, moves_to=1),
        PLAN,
        replace(PLAN, in_turn_ns=760_000),
    ],
)


def test_each_is_named_with_what_it_gives_in_its_turn_and_those_of_one_title_once() -> None:
    assert row_words(CHAIN) == "3 waits in a row: 1. Lengths (resolve), 3.0 %; 2 and 3. plan() reads, 17.0 %"


def in_calls(*names: str | None) -> WaitChainReport:
    return replace(CHAIN, links=[replace(link, api=name) for link, name in zip(CHAIN.links, names, strict=True)])


def test_calls_that_no_title_names_are_told_once_before_the_waits() -> None:
    """In the order in which they hold the host, so that it reads in one go."""
    same = in_calls(*["cudaMemcpyAsync"] * 3)
    assert row_words(same).startswith(
        "3 waits in a row, in cudaMemcpyAsync: 1. Lengths (resolve), 3.0 %; 2 and 3. plan()"
    )
    two = in_calls("cudaStreamSynchronize", "cudaMemcpyAsync", "cudaStreamSynchronize")
    assert row_words(two).startswith("3 waits in a row, in cudaStreamSynchronize and cudaMemcpyAsync: 1. Lengths")
    three = in_calls("cudaFree", "cudaMemcpyAsync", "cudaStreamSynchronize")
    assert row_words(three).startswith("3 waits in a row, in cudaFree, cudaMemcpyAsync and cudaStreamSynchronize: 1. ")


def test_where_a_title_names_its_call_the_others_stand_behind_theirs() -> None:
    chain = in_calls("cudaStreamSynchronize", "cudaMemcpyAsync", "cudaMemcpyAsync")
    titles = ["Drain", "cudaMemcpyAsync holds", "cudaMemcpyAsync holds"]
    links = [replace(link, title=title) for link, title in zip(chain.links, titles, strict=True)]
    assert row_words(replace(chain, links=links)) == (
        "3 waits in a row: 1. Drain (cudaStreamSynchronize), 3.0 %; 2 and 3. cudaMemcpyAsync holds, 17.0 %"
    )


def test_reports_of_before_calls_were_told_name_none() -> None:
    assert row_words(in_calls(None, None, None)) == row_words(CHAIN)


def test_what_all_give_is_told_beside_the_little_that_they_give_one_by_one() -> None:
    assert together_words(CHAIN) == (
        "1.60 ms (1.40 ms to 1.90 ms) a step, 20.0 % of the median step; "
        "one by one 340 us, since without one the next holds the host"
    )


def test_waits_that_give_as_much_alone_are_not_summed_up() -> None:
    alone = [replace(link, recoverable_ns=link.in_turn_ns) for link in CHAIN.links]
    assert together_words(replace(CHAIN, links=alone)).endswith("20.0 % of the median step")


def test_where_there_are_ranges_alone_each_is_told_by_its_upper_end() -> None:
    withheld = [
        replace(link, recoverable_ns=None, in_turn_ns=None, in_turn_range_ns=[0, 400_000], moves_to=None)
        for link in CHAIN.links
    ]
    chain = replace(CHAIN, joint=replace(JOINT, recoverable_ns=None, step_after_ns=None), links=withheld)
    assert together_words(chain) == "between 1.40 ms and 1.90 ms a step"
    assert row_words(chain) == (
        "3 waits in a row: 1. Lengths (resolve), up to 5.0 %; 2 and 3. plan() reads, each up to 5.0 %"
    )
