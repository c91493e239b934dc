from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bubblefinder.capture import workload
from bubblefinder.capture.recipes import eager_recipes, graph_recipes
from bubblefinder.overhead.fit import Runs, fit
from tests.unit.capture.fake_cuda import OPERATION_NS, FakeDriver

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(workload, "Driver", lambda: fake)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return fake


def test_it_measures_every_chain_before_inside_and_after_one_profiler_range(
    driver: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "m.json"
    monkeypatch.setattr("sys.argv", ["workload", str(output)])
    workload.main()
    measured = json.loads(output.read_text())
    graphs, eager = graph_recipes(dependent_launch=True), eager_recipes()
    assert driver.profiled == [True, False]
    assert measured["gpu"]["name"] == "Imaginary GPU"
    assert set(measured["recipes"]) == {recipe.name for recipe in (*graphs, *eager)}
    for phase in ("before", "inside", "after"):
        played = measured["phases"][phase]
        for recipe in graphs:
            spans = played["graphs"][recipe.name]["queued"]["span_ns"]
            assert set(spans) == {(len(recipe.items) + 1) * OPERATION_NS}
            assert len(played["graphs"][recipe.name]["idle"]["period_ns"]) == len(spans)
        assert set(played["eager"]) == {recipe.name for recipe in eager}
        assert set(played["stamped"]) == {"stamped_1", "stamped_64", "stamped_528"}


def test_what_it_writes_is_what_the_fit_reads(driver: FakeDriver) -> None:
    assert driver.capability == (9, 0)
    runs = [workload.measure() for _ in range(3)]
    calibration = fit(Runs(untraced=runs[:1], graph=runs[1:2], node=runs[2:]), driver="1.2", cupti="13.0", nsys=None)
    assert calibration.gpu == "Imaginary GPU"
    assert calibration.node.kernel_node.value == 0
    assert calibration.node.replay.value == 0


def test_a_gpu_without_early_launch_plays_the_rest(driver: FakeDriver) -> None:
    driver.capability = (8, 0)
    measured = workload.measure()
    assert not any(name.startswith("dependent") for name in measured["recipes"])
    assert "nodes_200" in measured["recipes"]
