from __future__ import annotations

import numpy as np

from bubblefinder.replay.chains import Chains, chains_of

SOURCE = np.array([0, 1, 0, 2, 3, 2, 5])
TARGET = np.array([1, 2, 3, 4, 4, 5, 6])
"""0 leads to 1, 2 and from there to 5 and 6; 0 also to 3; 4 waits for both 2 and 3."""


def rows(chains: Chains) -> list[list[int]]:
    return [chains.order[chains.row[chains.order] == row].tolist() for row in range(len(chains.first))]


def test_a_row_goes_on_as_long_as_each_node_waits_for_the_one_before_alone() -> None:
    chains = chains_of(7, SOURCE, TARGET, np.ones(7, np.bool_))
    assert rows(chains) == [[0, 1, 2, 5, 6], [3], [4]]
    assert chains.first.tolist() == [0, 3, 4]
    assert chains.order[chains.start].tolist() == chains.first[chains.row].tolist() == [0, 0, 0, 3, 4, 0, 0]


def test_what_the_first_nodes_wait_for_is_told_by_row() -> None:
    chains = chains_of(7, SOURCE, TARGET, np.ones(7, np.bool_))
    assert list(zip(chains.source, chains.target, strict=True)) == [(0, 1), (0, 2), (1, 2)]
    assert sorted([*chains.alone.tolist(), *chains.joining.tolist()]) == list(range(7))


def test_a_dependency_that_does_not_hold_ends_a_row() -> None:
    keep = np.ones(7, np.bool_)
    keep[1] = False
    assert rows(chains_of(7, SOURCE, TARGET, keep)) == [[0, 1], [2, 5, 6], [3], [4]]
