from __future__ import annotations

from dataclasses import asdict, replace
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.web.shelf import SORTS, Shelf, StoredRun

VALUES = {
    "label": st.sampled_from([None, "a", "B", "b"]),
    "state": st.sampled_from(["queued", "done", "failed"]),
    "gpu": st.sampled_from([None, "H200", "h100"]),
    "step_p50_ns": st.sampled_from([None, 1.0, 2.0]),
}
Changes: TypeAlias = list[tuple[int, dict[str, object] | None]]
CHANGES = st.lists(st.tuples(st.integers(0, 7), st.none() | st.fixed_dictionaries(VALUES)), max_size=30)


def played(changes: Changes) -> tuple[Shelf, dict[str, StoredRun]]:
    """A shelf after changes, where None is a deletion, and the runs in order of arrival."""
    shelf, runs = Shelf([]), dict[str, StoredRun]()
    for number, values in changes:
        name = str(number)
        if values is None:
            shelf.drop(name)
            runs.pop(name, None)
        else:
            runs[name] = replace(runs.get(name, StoredRun(id=name, name=name, created_s=0)), **values)  # type: ignore[arg-type]
            shelf.put(runs[name])
    return shelf, runs


@given(CHANGES)
def test_labels_and_predecessors_are_those_of_the_finished_runs_in_order_of_arrival(changes: Changes) -> None:
    shelf, runs = played(changes)
    done = [run for run in runs.values() if run.state == "done" and run.label is not None]
    labels = sorted({run.label for run in done if run.label})
    assert shelf.labels() == {label: sum(run.label == label for run in done) for label in labels}
    for label in labels:
        assert shelf.of_label(label, 3) == [run for run in done if run.label == label][-3:]
    order = list(runs)
    for run in runs.values():
        earlier = [one for one in done if one.label == run.label and order.index(one.id) < order.index(run.id)]
        assert shelf.before(run) == (earlier[-1] if earlier else None)


@pytest.mark.parametrize("sort", SORTS)
@given(changes=CHANGES, descending=st.booleans(), search=st.sampled_from(["", "h1", "DONE b"]))
def test_a_list_holds_what_matches_in_order_and_a_shelf_made_anew_says_the_same(
    sort: str,
    changes: Changes,
    *,
    descending: bool,
    search: str,
) -> None:
    shelf, runs = played(changes)
    asked = {"sort": sort, "descending": descending, "search": search}
    found, total = shelf.listed(**asked)  # type: ignore[arg-type]
    assert Shelf(runs.values()).listed(**asked) == (found, total)  # type: ignore[arg-type]
    texts = {run.id: " ".join(str(value) for value in asdict(run).values()).casefold() for run in runs.values()}
    words = search.casefold().split()
    assert total == len(found)
    assert {run.id for run in found} <= {
        run_id for run_id, text in texts.items() if all(word in text for word in words)
    }
    key = SORTS[sort] or (lambda run: list(runs).index(run.id))
    known = [key(run) for run in found if key(run) is not None]
    assert known == sorted(known, reverse=descending)
    assert all(key(run) is None for run in found[len(known) :])
