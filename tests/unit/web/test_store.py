from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from bubblefinder.web.shelf import SORTS, StoredRun
from bubblefinder.web.store import Store, new_id
from tests import processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "runs.db")
    yield store
    store.close()


def run(name: str = "a.sqlite", **values: object) -> StoredRun:
    return StoredRun(id=new_id(), name=name, **values)  # type: ignore[arg-type]


def test_a_run_comes_back_as_it_was_stored(store: Store) -> None:
    stored = run(label="nightly", commit="abc", baseline="x", metrics={"step.duration.p50": 1.5}, at_least=True)
    store.add(stored)
    assert store.get(stored.id) == stored


def test_an_unknown_id_is_none(store: Store) -> None:
    assert store.get("' OR 1=1 --") is None


def test_ids_are_long_and_never_the_same() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(one) == 32 and one.isalnum() for one in ids)


def test_the_oldest_waiting_run_is_claimed_first(store: Store) -> None:
    late, early = run(created_s=2), run(created_s=1)
    store.add(early)
    store.add(late)
    first, second = store.claim(), store.claim()
    assert first is not None
    assert second is not None
    assert (first.id, second.id) == (early.id, late.id)
    assert (first.state, first.attempts) == ("running", 1)
    assert store.claim() is None


def test_a_settled_run_stays_settled(store: Store) -> None:
    one = run()
    store.add(one)
    assert store.finish(one.id, "cancelled")
    assert not store.finish(one.id, "done", verdict="too late")
    stored = store.get(one.id)
    assert stored is not None
    assert (stored.state, stored.verdict) == ("cancelled", None)


def test_a_killed_servers_job_is_tried_once_more_and_then_failed(store: Store) -> None:
    one = run()
    store.add(one)
    store.claim()
    store.recover()
    again = store.get(one.id)
    assert again is not None
    assert again.state == "queued"
    store.claim()
    store.recover()
    given_up = store.get(one.id)
    assert given_up is not None
    assert given_up.state == "failed"
    assert "stopped twice" in (given_up.error or "")


def test_a_job_that_a_stopping_server_gave_back_may_be_tried_as_often(store: Store) -> None:
    one = run()
    store.add(one)
    for _ in range(5):
        store.claim()
        store.requeue(one.id, counted=False)
    stored = store.get(one.id)
    assert stored is not None
    assert (stored.state, stored.attempts) == ("queued", 0)


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("", ["b", "a", "100%"]),
        ("night", ["b", "a"]),
        ("H200 night", ["a"]),
        ("%", ["100%"]),
        ("_", []),
        ("' OR 1=1 --", []),
        ("ABC", ["b"]),
    ],
)
def test_search_finds_runs_with_every_word_and_takes_no_wildcards(store: Store, search: str, found: list[str]) -> None:
    store.add(run("100%", created_s=1))
    store.add(run("a", label="nightly", gpu="NVIDIA H200", created_s=2))
    store.add(run("b", label="nightly", commit="abc123", created_s=3))
    runs, total = store.shelf.listed(search=search)
    assert [one.name for one in runs] == found
    assert total == len(found)


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("descending", [True, False])
def test_unknown_values_sort_last_either_way(store: Store, sort: str, descending: bool) -> None:
    full = {"label": "l", "commit": "c", "gpu": "g", "nsys": "n", "step_p50_ns": 1.0, "bubble_share": 0.1}
    store.add(run("unknown", created_s=1))
    store.add(run("known", created_s=2, **full))
    names = [one.name for one in store.shelf.listed(sort=sort, descending=descending)[0]]
    if sort in {"created", "name"}:
        assert names == (["known", "unknown"] if (sort == "created") == descending else ["unknown", "known"])
    else:
        assert names == ["known", "unknown"]


def test_pages_of_the_list_follow_each_other(store: Store) -> None:
    for number in range(5):
        store.add(run(str(number), created_s=number))
    pages = [[one.name for one in store.shelf.listed(limit=2, offset=offset)[0]] for offset in (0, 2, 4)]
    assert pages == [["4", "3"], ["2", "1"], ["0"]]


def test_the_run_before_is_the_last_finished_one_of_the_label(store: Store) -> None:
    older, newer, other, failed = (
        run("older", label="x", created_s=1),
        run("newer", label="x", created_s=2),
        run("other", label="y", created_s=3),
        run("failed", label="x", created_s=4),
    )
    for one in (older, newer, other, failed):
        store.add(one)
        store.finish(one.id, "failed" if one is failed else "done")
    head = run("head", label="x", created_s=5)
    store.add(head)
    before = store.shelf.before(head)
    assert before is not None
    earlier = [store.shelf.before(one) for one in (newer, older, other)]
    assert [one.name if one else None for one in earlier] == ["older", None, None]
    assert before.name == "newer"
    assert [one.name for one, _ in store.of_label("x", "m")] == ["older", "newer"]
    assert store.shelf.labels() == {"x": 2, "y": 1}
    assert store.shelf.before(run("alone", created_s=6)) is None


def test_old_runs_are_those_that_nothing_works_on(store: Store) -> None:
    done, waiting, young = run("done", created_s=1), run("waiting", created_s=1), run("young", created_s=100)
    for one in (done, waiting, young):
        store.add(one)
    store.finish(done.id, "done")
    store.finish(young.id, "done")
    assert store.older_than(50) == [done.id]


def test_a_deleted_run_leaves_no_trace_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = Store(path)
    secret, kept = run(label="SECRET-LABEL" * 20), run(label="kept")
    store.add(secret)
    store.add(kept)
    assert b"SECRET-LABEL" in path.read_bytes()
    store.delete(secret.id)
    assert store.ids() == {kept.id}
    store.close()
    assert all(b"SECRET-LABEL" not in file.read_bytes() for file in tmp_path.iterdir())


def test_opening_the_store_loads_no_pandas_and_leaves_it_importable(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from bubblefinder.web.store import Store; "
        f"Store(Path({str(tmp_path / 'x.db')!r})).close(); assert 'pandas' not in sys.modules"
    )
    processes.run([sys.executable, "-c", script], check=True)


def test_a_run_given_back_because_the_disk_was_full_has_used_one_attempt(store: Store) -> None:
    one = run()
    store.add(one)
    store.claim()
    store.requeue(one.id, counted=True)
    again = store.claim()
    assert again is not None
    assert again.attempts == 2


def test_the_metric_of_a_label_comes_with_its_runs_and_is_none_where_unknown(store: Store) -> None:
    for metrics in ({"x.y": 1.5}, {}):
        one = run(label="l", metrics=metrics)
        store.add(one)
        store.finish(one.id, "done")
    assert [values for _, values in store.of_label("l", "x.y", "z")] == [(1.5, None), (None, None)]
    assert [value for _, value in store.of_label("l", """a"] ' \\ x""")] == [(None,), (None,)]


def test_what_people_say_of_a_run_can_be_changed(store: Store) -> None:
    one = run(label="a")
    store.add(one)
    store.edit(one.id, label="b", note="after the driver update", kept=True)
    stored = store.get(one.id)
    assert stored is not None
    assert (stored.label, stored.note, stored.kept) == ("b", "after the driver update", True)
    assert store.shelf.listed(search="driver")[1] == store.shelf.listed(label="b")[1] == 1
    assert store.shelf.listed(label="a")[1] == store.shelf.listed(states=["failed"])[1] == 0
    assert store.counts() == {"queued": 1, "running": 0, "done": 0, "failed": 0, "cancelled": 0}
