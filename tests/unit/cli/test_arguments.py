"""What commands are told: parts of a capture, and the run without a profiler."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.cli.arguments import overhead_source, parse_meta, parse_steps, parse_window
from bubblefinder.errors import UsageError
from bubblefinder.overhead.calibration import bundled_calibrations, encode_calibration

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("read_once")

NONE = (None, None)


def test_windows_take_units_and_open_sides() -> None:
    assert parse_window("1.2s:1.5s") == (1_200_000_000, 1_500_000_000)
    assert parse_window("300ms:") == (300_000_000, 2**62)
    assert parse_window(":5us") == (0, 5_000)
    assert parse_window(None) is None


@pytest.mark.parametrize("text", ["", "1s", "2s:1s", "1s:1s", "a:b", "1x:2x"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="START:END"):
        parse_window(text)


def test_steps_count_as_slices_do() -> None:
    assert [parse_steps("2:10"), parse_steps(":3"), parse_steps("4:")] == [(2, 10), (0, 3), (4, 2**62)]


@pytest.mark.parametrize("text", ["3", "3:3", "-1:2", "x:y"])
def test_what_is_no_range_of_steps_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="A:B"):
        parse_steps(text)


def test_meta_keeps_everything_behind_the_first_equals_sign() -> None:
    assert parse_meta(["host=a=b", "empty="]) == {"host": "a=b", "empty": ""}
    with pytest.raises(UsageError, match="key=value"):
        parse_meta(["alone"])


def test_a_step_is_the_time_a_token_times_the_accepted_tokens() -> None:
    assert overhead_source(None, None, (2.0, 3.5), None).untraced_step_ns == pytest.approx(7e6)
    assert overhead_source(None, 7.01, NONE, None).untraced_step_ns == pytest.approx(7.01e6)
    assert overhead_source(None, None, NONE, None).untraced_step_ns is None
    assert overhead_source(None, None, (2.0, 3.5), None).untraced_is_mean
    assert not overhead_source(None, 7.01, NONE, None).untraced_is_mean


@pytest.mark.parametrize(
    ("step_ms", "tokens", "said"),
    [
        (None, (2.0, None), "belong together"),
        (None, (None, 3.0), "belong together"),
        (7.0, (2.0, 3.5), "say the same thing"),
        (0.0, NONE, "0 is no length"),
        (-1.0, NONE, "-1 is no length"),
        (float("nan"), NONE, "nan is no length"),
        (None, (float("inf"), 1.0), "inf is no length"),
    ],
)
def test_what_makes_no_sense_is_refused(
    step_ms: float | None, tokens: tuple[float | None, float | None], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        overhead_source(None, step_ms, tokens, None)


def test_a_calibration_file_is_read(tmp_path: Path) -> None:
    (one,) = bundled_calibrations()
    path = tmp_path / "c.json"
    path.write_bytes(encode_calibration(one))
    assert overhead_source(None, None, NONE, path).calibration == one


def test_analyze_reports_raw_beside_corrected(sample: Callable[[str], Path]) -> None:
    arguments = ["analyze", str(sample("nextn_after.node")), "--json", "--untraced-step-ms", "7.01"]
    report = json.loads(CliRunner().invoke(app, arguments).output)
    overhead, raw = report["overhead"], report["steps"]["per_step"]
    assert overhead["method"] == "untraced_step"
    assert overhead["corrected_step_ns"] == 7_010_000
    assert overhead["traced_step_ns"] == round(raw["duration"]["p50"])
    assert overhead["corrected"]["intra_graph"] < raw["intra_graph"]["p50"]
    assert (
        overhead["corrected_bubble_share_range"]["intra_graph"][0] < overhead["corrected_bubble_share"]["intra_graph"]
    )
    assert overhead["parameters"]["kernel_node_ns"]["low"] < overhead["parameters"]["kernel_node_ns"]["high"]


def test_the_text_says_what_the_profiler_added(sample: Callable[[str], Path]) -> None:
    said = CliRunner().invoke(app, ["analyze", str(sample("nextn_after.node"))]).output
    assert "Without the profiler" in said
    assert "p50 corrected" in said
    assert "assumed from measurements on NVIDIA H200" in " ".join(said.split())
