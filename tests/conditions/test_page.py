"""docs/conditions.md says of every condition what the tests show, and nothing else."""

from __future__ import annotations

import tomllib

import pytest

from tests.conditions import page
from tests.mutations import MUTATIONS

KNOWN = page.conditions()
TESTED = page.tests()


@pytest.mark.parametrize("name", KNOWN)
def test_a_condition_has_an_answer_that_is_tested_or_a_reason_why_not(name: str) -> None:
    entry = KNOWN[name]
    assert set(entry) in ({"capture", "answer"}, {"capture", "out_of_scope"})
    assert bool(TESTED.get(name)) is ("answer" in entry)


def test_every_test_belongs_to_a_condition() -> None:
    assert TESTED.keys() <= KNOWN.keys()


def test_the_page_is_up_to_date() -> None:
    assert page.PAGE.read_text() == page.page(), "stale: run `python -m tests.conditions.page`"


def test_nothing_on_record_of_other_peoples_exports_went_wrong() -> None:
    seen = tomllib.loads((page.HERE / "corpus.toml").read_text())
    assert {kind for rows in seen.values() for kinds in rows.values() for kind in kinds} == {"answered", "refused"}


def test_nothing_on_record_of_damaged_exports_went_wrong() -> None:
    seen = tomllib.loads((page.HERE / "damage.toml").read_text())
    assert seen.keys() == page.DAMAGES.keys() == {"as it is", *MUTATIONS}
    assert {kind for kinds in seen.values() for kind in kinds} <= {"report", "refused", "inapplicable"}
    assert sum(sum(kinds.values()) for kinds in seen.values()) > 2_000
