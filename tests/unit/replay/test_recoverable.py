"""What ranges around Python functions cost the host, and what a late host costs without them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblefinder.overhead.calibration import bundled_calibrations
from bubblefinder.overhead.model import ZERO, Costs
from bubblefinder.replay.predict import steps_after
from bubblefinder.replay.tracing import remove_tracing, tracing_of
from bubblefinder.replay.untraced import left_without_tracing
from bubblefinder.timeline.rank import Rank
from bubblefinder.trace.model import Gpu
from tests.judged import Judged, judge
from tests.simulate import Graph, Machine, nodes

PARTS = [f"engine.worker.Worker.part_{letter}" for letter in "abcdefgh"]
TAX_US = 60


def loop(ranges: list[str], tax_us: float, work_us: float = 40) -> Judged:
    """A host that needs eight times `work_us` and as often the cost of a range, and a GPU that needs 500 us."""
    machine = Machine(jitter=0)
    host = machine.host()
    for _ in range(30):
        for name in ranges:
            host.work(tax_us / 2)
            with host.range(name):
                host.work(work_us)
            host.work(tax_us / 2)
        host.kernel("prepare", 3)
        host.replay(Graph(6, nodes(*("attn", "mlp") * 25, us=9)))
    return judge(machine.trace())


@pytest.mark.parametrize(("names", "left"), [(PARTS, 60), (["worker", "part.a"] * 4, 0)])
def test_each_function_range_is_taken_off_and_no_other_range(names: list[str], left: float) -> None:
    analysis = loop(names, TAX_US)
    assert analysis.model is not None
    cost = replace(ZERO, value=TAX_US * 1000.0)
    removed = remove_tracing(tracing_of(analysis.timeline, analysis.model), Costs(function_range=cost))
    (before,), (after,) = (steps_after(analysis.model, change).values() for change in ([], [removed]))
    assert before - after == pytest.approx(8 * TAX_US * 1000 if left else 0, rel=0.35, abs=20)


@pytest.mark.parametrize("driver", ["known", None], ids=["driver known", "no driver named"])
@pytest.mark.parametrize(("work_us", "least", "most"), [(40, 0.0, 0.05), (400, 0.5, 1.0)])
def test_a_host_that_only_the_ranges_made_late_costs_nothing(
    work_us: float, least: float, most: float, driver: str | None
) -> None:
    analysis = loop(PARTS, TAX_US, work_us)
    known = bundled_calibrations()[0]
    info = replace(
        analysis.trace.info,
        cupti_version=known.cupti,
        driver_version=driver and known.driver,
        gpus=(Gpu(0, known.gpu),),
    )
    measured = Judged(replace(analysis.trace, info=info))
    (step,) = measured.facts.steps
    rank = Rank(step.gpu, step.process)
    assert measured.model is not None
    left = left_without_tracing(measured.timeline, measured.model, measured.recoverable.hosts)[rank]
    assert least <= left <= most
