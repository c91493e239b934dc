"""The floor under a decode step, as people and programs read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from bubblefinder.render.kit.sheet import Sheet
from bubblefinder.render.kit.table import Table
from bubblefinder.report.economics_build import floor_report
from bubblefinder.report.sentences import plain
from bubblefinder.units import UNKNOWN, count, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.economics.floor import Floor

SCHEMA: Final = "bubblefinder.floor/1"
_GB: Final = 1e9
_SOURCES: Final = {"given": "as given", "capture": "as the capture states", "datasheet": "by the datasheet"}
_PARTS: Final = {
    "experts": "experts", "shared_experts": "shared experts", "gate": "gates", "dense": "dense layers",
    "attention": "projections", "head": "LM head", "kv": "KV cache",
}  # fmt: skip
_LINES: Final = {
    "floor": "floor", "above_floor": "busy above the floor", "intra_graph": "idle inside graphs",
    "host_late": "host late", "launching": "launching", "queued": "queued", "unattributed": "unattributed",
    "unrecorded": "unrecorded", "profiler": "profiler",
}  # fmt: skip


def sheet(floor: Floor) -> Sheet:
    """Return the floor, role by role and part by part, and the step as it stands on it."""
    return Sheet(
        document="floor",
        title=f"{plain(floor.model, 80)} · bubblefinder floor",
        headline=_headline(floor),
        verdict=_headline(floor),
        basis=_basis(floor),
        warnings=tuple(_warnings(floor)),
        tables=tuple(table for table in (_roles(floor), _parts(floor), _waterfall(floor)) if table.rows),
    )


def records(floor: Floor) -> list[dict[str, object]]:
    """Return one record a role."""
    return [
        {
            "role": role.traffic.role,
            "bytes": round(role.traffic.total),
            "floor_ns": round(role.floor_ns),
            "least_ns": round(role.least_ns),
            "length_ns": role.length_ns,
            "achieved_share": role.achieved_share,
            "effective_bandwidth": role.effective_bandwidth,
        }
        for role in floor.roles
    ]


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


def _headline(floor: Floor) -> str:
    moved = f"A step of {plain(floor.model, 80)} moves at least {_gigabytes(floor.bytes)}: {duration(floor.floor_ns)}"
    rate = f"at {floor.bandwidth.bytes_per_second / _GB:,.0f} GB/s"
    if floor.step_ns is None:
        return f"{moved} {rate}."
    share_of_step = share(floor.achieved_share)
    return f"{moved} {rate}, {share_of_step} of the mean step of {duration(floor.step_ns)}."


def _basis(floor: Floor) -> str:
    best = f"The bandwidth is nominal, {_SOURCES[floor.bandwidth.source]}."
    if floor.bandwidth.achievable:
        best += f" A plain copy reaches {share(floor.bandwidth.achievable, 0)} of it on such a GPU."
    return (
        f"{best} Effective bandwidth is bytes counted over time measured: no counter was read, and launches and waits "
        "are in it. Weights are counted once a pass, of the experts as many as differ when tokens choose at random."
    )


def _warnings(floor: Floor) -> Iterator[str]:
    if floor.impossible:
        roles = " and ".join(floor.impossible)
        yield f"{roles} took less time than the floor: another model ran, or its tokens chose fewer different experts"
    elif floor.step_ns is not None and floor.waterfall is None:
        yield "the floor is longer than the busy time of the step: another model ran, or another load"
    if floor.bound_by_arithmetic:
        roles = " and ".join(floor.bound_by_arithmetic)
        yield f"{roles} do so much arithmetic a byte that memory need not be the limit; the floor says little there"
    absent = [role.traffic.role for role in floor.roles if role.length_ns is None]
    if absent and floor.step_ns is not None:
        yield f"the capture has no graph replays with the role {' or '.join(absent)}: only their floor is known"


def _roles(floor: Floor) -> Table:
    rows = [
        (
            role.traffic.role,
            count(role.traffic.passes),
            count(role.traffic.tokens),
            _gigabytes(role.traffic.total),
            duration(role.floor_ns),
            duration(role.least_ns),
            duration(role.length_ns),
            share(role.achieved_share),
            UNKNOWN if role.effective_bandwidth is None else f"{role.effective_bandwidth / _GB:,.0f} GB/s",
            UNKNOWN if role.traffic.intensity is None else f"{role.traffic.intensity:.1f}",
        )
        for role in floor.roles
    ]
    ridge = floor.bandwidth.ridge
    regime = f"Memory bounds bf16 products below {ridge:,.0f} FLOP a byte here." if ridge else ""
    return Table(
        title="Floor and length of each role",
        header=("role", "passes", "tokens", "bytes", "floor", "at least", "takes", "achieved", "effective", "FLOP/B"),
        rows=rows,
        note=f"at least: if all tokens of a pass chose the same experts. {regime}".strip(),
        spare=2,
        left=frozenset({"role"}),
    )


def _parts(floor: Floor) -> Table:
    known = [name for name in _PARTS if any(role.traffic.parts.get(name) for role in floor.roles)]
    rows = [(_PARTS[name], *(_gigabytes(role.traffic.parts.get(name, 0.0)) for role in floor.roles)) for name in known]
    return Table(
        title="What is moved",
        header=("part", *(role.traffic.role for role in floor.roles)),
        rows=rows,
        left=frozenset({"part"}),
    )


def _waterfall(floor: Floor) -> Table:
    known = floor.waterfall or {}
    rows = [
        (_LINES.get(name, name), duration(value), share(value / floor.step_ns) if floor.step_ns else UNKNOWN)
        for name, value in known.items()
        if value
    ]
    return Table(
        title="What a step is made of, from the floor up",
        header=("part", "mean", "share"),
        rows=rows,
        note="" if known.get("intra_graph") is not None else "What graphs idle inside was not measured: it is in busy.",
        left=frozenset({"part"}),
    )


def _gigabytes(size: float) -> str:
    return f"{size / _GB:.3f} GB" if size >= _GB / 1e3 else f"{size / 1e6:.3f} MB"
