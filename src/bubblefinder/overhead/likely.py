"""What tracing is likely to cost where the capture alone can't tell: what it was measured to cost elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bubblefinder.overhead.calibration import bundled_calibrations, mismatch
from bubblefinder.timeline.model import CaptureMode

if TYPE_CHECKING:
    from bubblefinder.overhead.model import Costs
    from bubblefinder.timeline.model import Timeline


def likely_costs(timeline: Timeline, gpu: int) -> Costs | None:
    """Return what this way of capturing was measured to cost; where the export names no driver, whatever it was."""
    for one in bundled_calibrations():
        info = timeline.trace.info
        if mismatch(one, info if info.driver_version else replace(info, driver_version=one.driver), gpu) is None:
            return one.graph if timeline.mode is CaptureMode.GRAPH else one.node
    return None
