from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from bubblefinder.errors import UsageError
from bubblefinder.overhead.calibration import (
    bundled_calibrations,
    decode_calibration,
    encode_calibration,
    mismatch,
    read_calibration,
)
from bubblefinder.overhead.model import Cost, Costs
from bubblefinder.trace.model import Gpu, TraceInfo

H200 = TraceInfo(
    name="a",
    format="sqlite",
    nsys_version="2026.2.1",
    cupti_version="13.0",
    driver_version="580.82.07",
    gpus=(Gpu(0, "NVIDIA H200"), Gpu(1, "NVIDIA L4")),
)


def known(costs: Costs) -> list[Cost]:
    return [cost for item in fields(costs) if isinstance(cost := getattr(costs, item.name), Cost)]


def test_what_is_written_reads_back_equal() -> None:
    (one,) = bundled_calibrations()
    assert decode_calibration(encode_calibration(one)) == one


def test_the_bundled_one_was_measured_and_has_honest_ranges() -> None:
    (one,) = bundled_calibrations()
    assert (one.gpu, one.cupti, one.driver.split(".")[0]) == ("NVIDIA H200", "13.0", "580")
    assert len(one.measured) >= 40
    for cost in (*known(one.node), *known(one.graph)):
        assert 0 <= cost.low <= cost.value <= cost.high
    assert one.node.kernel_node.high > 1.5 * one.node.kernel_node.value
    assert one.graph.kernel_node == Cost(0, 0, 0)


def test_the_collector_decides_and_not_the_exporter() -> None:
    (one,) = bundled_calibrations()
    assert mismatch(one, H200, 0) is None
    assert mismatch(one, H200, 1) == "GPU NVIDIA L4 is not NVIDIA H200"
    assert mismatch(one, replace(H200, cupti_version="12.4"), 0) == "CUPTI 12.4 is not 13.0"
    assert mismatch(one, replace(H200, driver_version="575.1"), 0) == "driver branch 575 is not 580"
    unrecorded = mismatch(one, replace(H200, driver_version=None), 0)
    assert unrecorded == "the capture doesn't record its driver branch, and the calibration holds for 580"
    unknown = mismatch(one, replace(H200, cupti_version=None), 0)
    assert unknown
    assert "doesn't name its collector" in unknown


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"schema": "bubblefinder.report/1"}', b"\xff\xfe", b'{"schema": 1}']
)
def test_what_is_no_calibration_is_said_in_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"^c\.json: this is no calibration file"):
        read_calibration(path)


def test_a_calibration_of_another_schema_is_refused() -> None:
    (one,) = bundled_calibrations()
    with pytest.raises(UsageError, match="calibration/9"):
        decode_calibration(encode_calibration(replace(one, schema="bubblefinder.calibration/9")))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        read_calibration(tmp_path / "gone.json")


def test_the_page_shows_the_measured_table() -> None:
    (one,) = bundled_calibrations()
    page = (Path(__file__).parents[3] / "docs" / "overhead.md").read_text()
    for row in one.measured:
        lengths = (row.untraced_ns, row.graph_mode_ns or 0, row.node_mode_ns or 0)
        cells = [f"`{row.recipe}`", f"{row.operations:,}", *(f"{length / 1e3:,.0f}" for length in lengths)]
        assert f"| {' | '.join(cells)} | {row.added_ns_per_operation:,.0f} |" in page
