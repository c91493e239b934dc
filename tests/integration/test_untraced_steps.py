"""`analyze` and `whatif --no-profiler` against steps that were measured with no profiler.

Wall-clock medians of the very runs that were captured; several repeats where three figures stand.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.errors import CannotAnswerError
from tests import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Sample = Callable[[str], Path]

pytestmark = pytest.mark.usefixtures("read_once")

MS = 1_000_000
UNTRACED = {
    "nextn_after.node": (7.014, 7.015, 7.018),
    "dspark_after.node": (7.019, 7.023, 7.039),
    "nextn_after_pdl.node": (7.052, 7.052, 7.055),
    "dspark_before.node": (7.137, 7.143, 7.188),
    "nextn_before.node": (8.40, 8.56, 9.02),
    "nextn_before.graph": (8.44, 8.51, 9.60),
    "eager_item": (10.8, 11.5, 11.9),
    "tp2_before.node": (6.10, 6.14, 6.19),
    "torch_adaptive.node": (1.889,),
    "torch_batches.node": (0.911,),
    "torch_prefill.node": (0.936,),
    "torch_piecewise.node": (0.943,),
    "torch_eager": (0.685,),
}
CANT_TELL = {"eager_item", "torch_piecewise.node", "torch_eager"}


def asked(path: Path) -> dict[str, object]:
    said = CliRunner().invoke(app, ["whatif", str(path), "--no-profiler", "--json"], catch_exceptions=False)
    answer: dict[str, object] = json.loads(said.output)["asked"]
    return answer


@pytest.mark.parametrize("name", UNTRACED)
def test_both_commands_give_one_answer_and_the_truth_lies_in_its_range(sample: Sample, name: str) -> None:
    overhead = samples.report(name).overhead
    low, high = overhead.range_ns or (0, 0)
    assert any(low <= step * MS <= high for step in UNTRACED[name])
    if name in CANT_TELL:
        assert overhead.corrected_step_ns is None
        with pytest.raises(CannotAnswerError, match="can't be told from this capture"):
            asked(sample(name))
        return
    answer = asked(sample(name))
    assert answer["step_ns"] == overhead.corrected_step_ns
    assert answer["range_ns"] == list(overhead.range_ns or ())


@pytest.mark.parametrize("name", ["torch_eager", "nextn_before.node"])
def test_where_it_cant_be_told_every_answer_says_how_much_may_be_the_profilers(sample: Sample, name: str) -> None:
    said = CliRunner().invoke(app, ["whatif", str(sample(name)), "--json"], catch_exceptions=False)
    overhead = samples.report(name).overhead
    low, _ = overhead.range_ns or (0, 0)
    told = (overhead.traced_step_ns or 0) - low if name in CANT_TELL else None
    assert json.loads(said.output)["profilers_ns"] == told


@pytest.mark.parametrize("name", sorted(CANT_TELL))
def test_no_gain_on_top_of_the_untraced_step_is_told_where_that_step_cant_be(sample: Sample, name: str) -> None:
    with pytest.raises(CannotAnswerError, match="lies between"):
        CliRunner().invoke(
            app, ["whatif", str(sample(name)), "--host-speed", "2", "--no-profiler"], catch_exceptions=False
        )


@pytest.mark.parametrize("name", ["nextn_before.nsys2023.node"])
def test_both_say_so_where_nothing_is_known_of_the_profiler(sample: Sample, name: str) -> None:
    assert samples.report(name).overhead.corrected_step_ns is None
    with pytest.raises(CannotAnswerError, match="doesn't name its collector"):
        asked(sample(name))
