"""Calibration files: read, written, matched to a capture, and those that come with the product."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from bubblefinder.errors import UsageError
from bubblefinder.overhead.fit import CALIBRATION_SCHEMA
from bubblefinder.overhead.model import Calibration
from bubblefinder.timeline.model import CaptureMode

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.overhead.model import Costs
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import TraceInfo


def decode_calibration(content: bytes) -> Calibration:
    """Return the calibration in a JSON document.

    Raises:
        UsageError: it is none, or of a schema this version doesn't know.
    """
    import msgspec

    try:
        calibration = msgspec.json.decode(content, type=Calibration)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError("this is no calibration file", hint="make one with `bubblefinder calibrate`") from error
    if calibration.schema != CALIBRATION_SCHEMA:
        raise UsageError(
            f"the calibration has schema {calibration.schema!r}, not {CALIBRATION_SCHEMA!r}",
            hint="make a new one with `bubblefinder calibrate`",
        )
    return calibration


def encode_calibration(calibration: Calibration) -> bytes:
    """Return a calibration as JSON."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(calibration, order="sorted"), indent=1) + b"\n"


def read_calibration(path: Path) -> Calibration:
    """Return the calibration in a file.

    Raises:
        UsageError: the file can't be read or holds none.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path.name} can't be read: {error.strerror}", hint="check the path") from error
    try:
        return decode_calibration(content)
    except UsageError as error:
        raise UsageError(f"{path.name}: {error}", hint=error.hint) from error


@cache
def bundled_calibrations() -> tuple[Calibration, ...]:
    """Return the calibrations that come with the product."""
    folder = files("bubblefinder.overhead") / "bundled"
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".json")), key=lambda entry: entry.name)
    return tuple(decode_calibration(entry.read_bytes()) for entry in found)


def likely_costs(timeline: Timeline, gpu: int) -> Costs | None:
    """Return what this way of capturing was measured to cost; where the export names no driver, whatever it was."""
    for one in bundled_calibrations():
        info = timeline.trace.info
        if mismatch(one, info if info.driver_version else replace(info, driver_version=one.driver), gpu) is None:
            return one.graph if timeline.mode is CaptureMode.GRAPH else one.node
    return None


def mismatch(calibration: Calibration, info: TraceInfo, gpu: int) -> str | None:
    """Say why a calibration doesn't hold for a capture; null if it does.

    The collector's CUPTI and the branch of the driver decide, not the version that exported the capture.
    """
    name = next((one.name for one in info.gpus if one.gpu == gpu), None)
    if info.cupti_version is None:
        return (
            "the capture doesn't name its collector's CUPTI (later captures of one --capture-range-end=repeat run "
            "don't), so no measured cost can be assumed to hold for it"
        )
    pairs = (
        ("GPU", calibration.gpu, name),
        ("CUPTI", calibration.cupti, info.cupti_version),
        ("driver branch", _branch(calibration.driver), _branch(info.driver_version)),
    )
    return next((_unlike(what, ours, theirs) for what, ours, theirs in pairs if ours != theirs), None)


def _unlike(what: str, ours: str | None, theirs: str | None) -> str:
    if theirs is None:
        return f"the capture doesn't record its {what}, and the calibration holds for {ours}"
    return f"{what} {theirs} is not {ours}"


def _branch(driver: str | None) -> str | None:
    return driver.split(".")[0] if driver else None
