"""One list of columns for what is loaded, what is drawn and what is documented."""

from __future__ import annotations

import polars as pl
import pytest

from bubblefinder.trace.columns import FRAMES, MEANINGS
from bubblefinder.trace.sketch import Sketch
from tests.samples import analysis


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("name", ["nextn_before.node", "dspark_before.node_pqtdir", "nextn_before.nsys2023.node"])
def test_a_loaded_capture_and_a_drawn_one_have_the_columns_that_are_listed(name: str, frame: str) -> None:
    listed = pl.Schema({column: getattr(pl, field.dtype) for column, field in FRAMES[frame].items()})
    assert getattr(analysis(name).trace, frame).schema == listed
    assert getattr(Sketch().trace(), frame).schema == listed


def test_every_frame_says_what_it_holds() -> None:
    assert MEANINGS.keys() == FRAMES.keys()
