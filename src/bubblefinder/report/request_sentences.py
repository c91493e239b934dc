"""How many requests the steps serve, said the same way in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.units import plural

if TYPE_CHECKING:
    from bubblefinder.report.model import Stats, StepsReport

_FEW: Final = 4
"""As many batch sizes are told one by one."""

_FROM: Final = {"nvtx": "NVTX", "launch_shapes": "launch shapes"}


def requests_sentence(steps: StepsReport) -> list[str]:
    """Return how many requests the steps serve and what says so; nothing where nothing does.

    Reports that don't say what told the numbers have them from NVTX, and know them of every step.
    """
    if steps.requests is None:
        return []
    told = steps.requests_steps
    unknown = steps.count - sum(told.values()) if told else 0
    several = steps.requests.min != steps.requests.max
    if several and len(told) in range(1, _FEW + 1):
        numbers = ", ".join(f"{int(number):,} in {plural(of_them, 'step')}" for number, of_them in told.items())
    else:
        numbers = _range(steps.requests)
    missing = f", unknown in {plural(unknown, 'step')}" if unknown else ""
    mixed = "; the figures are of all of them" if several else ""
    return [f"Requests a step: {numbers}{missing} (from {_FROM.get(steps.requests_from or '', 'NVTX')}){mixed}."]


def requests_words(requests: Stats) -> str:
    """Return ``8 requests`` or ``3 to 16 requests, 12 in the median``."""
    if requests.min == requests.max:
        return plural(requests.max or 0, "request")
    return _range(requests, " requests")


def _range(requests: Stats, noun: str = "") -> str:
    if requests.min == requests.max:
        return f"{requests.max:,}{noun}"
    return f"{requests.min:,} to {requests.max:,}{noun}, {requests.p50:g} in the median"
