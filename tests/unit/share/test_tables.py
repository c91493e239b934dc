"""What may be shared covers what is read, and no more text than is named."""

from __future__ import annotations

import pytest

from bubblefinder.share.scrub import Scrubber
from bubblefinder.share.tables import shared_columns
from bubblefinder.trace import part, schema
from bubblefinder.trace.schema import Table

READ = [table for module in (schema, part) for table in vars(module).values() if isinstance(table, Table)]
LEFT_OUT = {("PROCESSES", "name"), ("StringIds", "id"), ("StringIds", "value")}


@pytest.mark.parametrize("table", READ, ids=lambda table: table.name)
def test_every_column_that_is_read_may_be_shared(table: Table) -> None:
    shared = shared_columns(table.name)
    missing = {(table.name, column.source) for column in table.columns if column.source not in shared}
    assert missing <= LEFT_OUT


@pytest.mark.parametrize("table", READ, ids=lambda table: table.name)
def test_text_that_is_read_has_a_kind_that_the_scrubber_knows(table: Table) -> None:
    for column in table.columns:
        if column.is_text and column.source in shared_columns(table.name):
            kind = shared_columns(table.name)[column.source].kind
            assert kind is not None
            assert Scrubber(()).clean(kind, "") == ("GPU-0" if kind == "serial" else "")


def test_a_table_that_is_not_listed_has_nothing_to_share() -> None:
    assert shared_columns("ProcessStreams") == {}
    assert set(shared_columns("ENUM_CUDA_MEMCPY_OPER")) == {"id", "number", "name"}
