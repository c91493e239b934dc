from __future__ import annotations

import pytest

from bubblefinder.trace import schema
from bubblefinder.trace.schema import Column, Table, candidates


@pytest.mark.parametrize(
    ("stored", "best_first"),
    [
        ({"T", "T_V2", "T_V10", "T_V3"}, ["T", "T_V10", "T_V3", "T_V2"]),
        ({"T_V2", "OLD"}, ["T_V2", "OLD"]),
        ({"TT", "T_V", "T_Vx", "xT", "T_OLD"}, []),
    ],
)
def test_tables_are_found_under_their_other_names(stored: set[str], best_first: list[str]) -> None:
    assert candidates(Table("T", (Column("a", "a"),), older_name="OLD"), stored) == best_first


def test_no_table_that_holds_environments_or_output_is_described() -> None:
    described = {table.name for table in vars(schema).values() if isinstance(table, Table)}
    assert "CUPTI_ACTIVITY_KIND_KERNEL" in described
    assert not described & {"META_DATA_CAPTURE", "ProcessStreams", "ANALYSIS_FILE", "OSRT_FILE_ACCESS_EVENTS"}
