"""The floor under a decode step, as people and programs read it: by itself, and as a part of a report."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bubblefinder.render.kit.sheet import Sheet, Table
from bubblefinder.report.economics_build import floor_report
from bubblefinder.report.sentences import class_label, plain
from bubblefinder.units import UNKNOWN, count, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.economics.floor import Floor
    from bubblefinder.report.economics import FloorReport

SCHEMA: Final = "bubblefinder.floor/1"
_GB: Final = 1e9
_SOURCES: Final = {"given": "as given", "capture": "as the capture states", "datasheet": "by the datasheet"}
_PARTS: Final = {
    "experts": "experts", "shared_experts": "shared experts", "gate": "gates", "dense": "dense layers",
    "attention": "projections", "head": "LM head", "kv": "KV cache",
}  # fmt: skip
_LINES: Final = {"above_floor": "busy above the floor", "intra_graph": "idle inside graphs"}


def sheet(floor: Floor) -> Sheet:
    """Return the floor, role by role and part by part, and the step as it stands on it."""
    told = floor_report(floor)
    roles, *step = tables(told)
    return Sheet(
        document="floor",
        title=f"{plain(floor.model, 80)} · bubblefinder floor",
        headline=headline(told),
        verdict=headline(told),
        basis=_basis(floor),
        warnings=tuple(_warnings(floor)),
        tables=(roles, _moved(floor), *step),
    )


def headline(floor: FloorReport) -> str:
    """Return what a step moves at least, what that takes, and how much of the step it is."""
    moved = f"A step of {plain(floor.model, 80)} moves at least {_gigabytes(floor.bytes)}: {duration(floor.floor_ns)}"
    of_step = f", {share(floor.achieved_share)} of the mean step of {duration(floor.step_ns)}" if floor.step_ns else ""
    return f"{moved} at {floor.bandwidth / _GB:,.0f} GB/s{of_step}."


def impossible(floor: FloorReport) -> Iterator[str]:
    """Yield which roles were faster than the shape allows, if any."""
    if floor.impossible:
        roles = " and ".join(floor.impossible)
        yield f"{roles} took less time than the floor: another model ran, or its tokens chose fewer different experts"


def tables(floor: FloorReport) -> Iterator[Table]:
    """Yield the floor of each role, and the step from the floor up where that is known."""
    yield _roles(floor)
    if floor.waterfall_ns and floor.step_ns:
        yield _waterfall(floor.waterfall_ns, floor.step_ns)


def records(floor: Floor) -> list[dict[str, object]]:
    """Return one record a role."""
    return [asdict(role) for role in floor_report(floor).roles]


def document(floor: Floor) -> dict[str, object]:
    """Return the floor for JSON; `docs/floor.md` lists the names."""
    made: dict[str, Any] = msgspec.to_builtins(floor_report(floor))
    del made["impossible"]
    rate = floor.bandwidth
    made |= {"schema": SCHEMA, "achievable_share": rate.achievable, "ridge": rate.ridge}
    for told, traffic in zip(made["roles"], (role.traffic for role in floor.roles), strict=True):
        told |= {"passes": traffic.passes, "tokens": traffic.tokens, "intensity": traffic.intensity}
        told["parts"] = {name: round(size) for name, size in traffic.parts.items() if size}
    return made


def _basis(floor: Floor) -> str:
    best = f"The bandwidth is nominal, {_SOURCES[floor.bandwidth.source]}."
    if floor.bandwidth.achievable:
        best += f" A plain copy reaches {share(floor.bandwidth.achievable, 0)} of it on such a GPU."
    return (
        f"{best} Effective bandwidth is bytes counted over time measured: no counter was read, and launches and waits "
        "are in it. Weights are counted once a pass, of the experts as many as differ when tokens choose at random."
    )


def _warnings(floor: Floor) -> Iterator[str]:
    yield from impossible(floor_report(floor))
    if not floor.impossible and floor.step_ns is not None and floor.waterfall is None:
        yield "the floor is longer than the busy time of the step: another model ran, or another load"
    if floor.bound_by_arithmetic:
        roles = " and ".join(floor.bound_by_arithmetic)
        yield f"{roles} do so much arithmetic a byte that memory need not be the limit; the floor says little there"
    absent = [role.traffic.role for role in floor.roles if role.length_ns is None]
    if absent and floor.step_ns is not None:
        yield f"the capture has no graph replays with the role {' or '.join(absent)}: only their floor is known"


def _roles(floor: FloorReport) -> Table:
    rows = [
        (
            role.role,
            _gigabytes(role.bytes),
            duration(role.floor_ns),
            duration(role.least_ns),
            duration(role.length_ns),
            share(role.achieved_share),
            UNKNOWN if role.effective_bandwidth is None else f"{role.effective_bandwidth / _GB:,.0f} GB/s",
        )
        for role in floor.roles
    ]
    header = ("role", "bytes", "floor", "at least", "takes", "achieved", "effective")
    note = "at least: if all tokens of a pass chose the same experts."
    return Table("Floor and length of each role", header, rows, note)


def _moved(floor: Floor) -> Table:
    moved = [role.traffic for role in floor.roles]
    known = [name for name in _PARTS if any(one.parts.get(name) for one in moved)]
    rows = [
        ("passes", *(count(one.passes) for one in moved)),
        ("tokens a pass", *(count(one.tokens) for one in moved)),
        *((_PARTS[name], *(_gigabytes(one.parts.get(name, 0.0)) for one in moved)) for name in known),
        ("FLOP a byte", *(UNKNOWN if one.intensity is None else f"{one.intensity:.1f}" for one in moved)),
    ]
    ridge = floor.bandwidth.ridge
    note = f"Memory bounds bf16 products below {ridge:,.0f} FLOP a byte here." if ridge else ""
    return Table("What each role moves", ("", *(one.role for one in moved)), rows, note)


def _waterfall(parts: dict[str, int | None], step_ns: int) -> Table:
    rows = [
        (_LINES.get(name, class_label(name)), duration(value), share(value / step_ns))
        for name, value in parts.items()
        if value
    ]
    note = "" if parts.get("intra_graph") is not None else "What graphs idle inside was not measured: it is in busy."
    header = ("part", "mean", "share")
    return Table("What a step is made of, from the floor up", header, rows, note)


def _gigabytes(size: float) -> str:
    return f"{size / _GB:.3f} GB" if size >= _GB / 1e3 else f"{size / 1e6:.3f} MB"
