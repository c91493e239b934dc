"""The floor under a step's busy time: the bytes that it has to move over the memory's bandwidth, role by role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.economics.traffic import step_traffic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bubblefinder.economics.hardware import Bandwidth
    from bubblefinder.economics.shape import Shape
    from bubblefinder.economics.traffic import Load, Traffic

MOST_BELIEVED: Final = 1.0
"""An achieved share above this can't be: the model that ran moved fewer bytes than the shape says."""
NEAR_RIDGE: Final = 0.5
"""From this part of the ridge on arithmetic, not memory, may bound the work, and the floor says little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleFloor:
    """The floor under one role of a step.

    Attributes:
        traffic: what the role moves in a step.
        floor_ns: its bytes over the nominal bandwidth.
        least_ns: the same if all tokens of a pass chose the same experts.
        length_ns: how long its replays take in a step, median; null where the capture has no such role.
    """

    traffic: Traffic
    floor_ns: float
    least_ns: float
    length_ns: float | None

    @property
    def achieved_share(self) -> float | None:
        """Floor over length."""
        return self.floor_ns / self.length_ns if self.length_ns else None

    @property
    def effective_bandwidth(self) -> float | None:
        """Bytes a second that the role moves over its own length; no counter reading."""
        return self.traffic.total / self.length_ns * 1e9 if self.length_ns else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The floor under a decode step.

    Attributes:
        model: name of the shape.
        source: where its figures are from.
        load: how it ran.
        bandwidth: what the floor is held against.
        roles: in the order of the step.
        step_ns: mean decode step; null without one.
        waterfall: mean times that sum to the step: floor, above_floor (busy time beyond it), then the ledger's idle
            classes; a class that was not measured is null and its time is in `above_floor`. Null without a step, or
            where the floor is longer than the busy time.
    """

    model: str
    source: str
    load: Load
    bandwidth: Bandwidth
    roles: tuple[RoleFloor, ...]
    step_ns: float | None
    waterfall: dict[str, float | None] | None

    @property
    def bytes(self) -> float:
        """Bytes of all roles."""
        return sum(role.traffic.total for role in self.roles)

    @property
    def floor_ns(self) -> float:
        """The floors of all roles, one after the other."""
        return sum(role.floor_ns for role in self.roles)

    @property
    def achieved_share(self) -> float | None:
        """Floor over the mean step."""
        return self.floor_ns / self.step_ns if self.step_ns else None

    @property
    def effective_bandwidth(self) -> float | None:
        """Bytes a second over the mean step."""
        return self.bytes / self.step_ns * 1e9 if self.step_ns else None

    @property
    def impossible(self) -> tuple[str, ...]:
        """The roles that were faster than the shape allows."""
        return tuple(role.traffic.role for role in self.roles if (role.achieved_share or 0) > MOST_BELIEVED)

    @property
    def bound_by_arithmetic(self) -> tuple[str, ...]:
        """The roles whose arithmetic comes near the ridge, so that memory need not be the limit."""
        ridge = self.bandwidth.ridge
        near = [role.traffic for role in self.roles if ridge and (role.traffic.intensity or 0) > NEAR_RIDGE * ridge]
        return tuple(traffic.role for traffic in near)


def floor_of(
    shape: Shape,
    load: Load,
    bandwidth: Bandwidth,
    lengths: Mapping[str, float],
    means: Mapping[str, float | None],
) -> Floor:
    """Return the floor under a step.

    Args:
        shape: the model.
        load: how it ran.
        bandwidth: of one GPU.
        lengths: by role: time of its replays in a step, ns.
        means: mean of the step's duration, busy time and idle classes, ns, named as in `per_step`; empty without one.
    """
    roles = tuple(_role(traffic, bandwidth, lengths) for traffic in step_traffic(shape, load))
    floor_ns = sum(role.floor_ns for role in roles)
    return Floor(
        model=shape.name,
        source=shape.source,
        load=load,
        bandwidth=bandwidth,
        roles=roles,
        step_ns=means.get("duration"),
        waterfall=_waterfall(floor_ns, means),
    )


def _role(traffic: Traffic, bandwidth: Bandwidth, lengths: Mapping[str, float]) -> RoleFloor:
    per_byte = 1e9 / bandwidth.bytes_per_second
    return RoleFloor(
        traffic=traffic,
        floor_ns=traffic.total * per_byte,
        least_ns=(traffic.total - traffic.spared) * per_byte,
        length_ns=lengths.get(traffic.role),
    )


def _waterfall(floor_ns: float, means: Mapping[str, float | None]) -> dict[str, float | None] | None:
    busy = means.get("busy")
    if busy is None or floor_ns > busy:
        return None
    idle = {name: value for name, value in means.items() if name not in ("duration", "busy")}
    return {"floor": floor_ns, "above_floor": busy - floor_ns, **idle}
