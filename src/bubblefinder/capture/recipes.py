"""What the calibration workload plays: chains of kernels, copies and memsets that vary one property at a time.

They are no model's decode loop. Node counts, kernel lengths, grids, shared memory, node kinds, early launch and
branches change one by one, and the `mixed` chains change them all together.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

Kind = Literal["kernel", "wide", "dependent", "stamped", "memset", "copy"]
_BASE_GRID = 64
_BASE_MICROS = 3.0


@dataclass(frozen=True, slots=True)
class Item:
    """One operation; `micros` is how long a kernel spins, `words` how many floats each thread touches afterwards."""

    kind: Kind
    micros: float = _BASE_MICROS
    grid: int = _BASE_GRID
    block: int = 128
    function: int = 0
    words: int = 1
    size: int = 64


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named chain, split over `branches` streams when more than one."""

    name: str
    items: tuple[Item, ...]
    branches: int = 1

    def counts(self) -> dict[str, int]:
        """Return how many operations of each kind the chain has."""
        kinds = [item.kind for item in self.items]
        return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def _kernels(
    count: int,
    *,
    micros: float = _BASE_MICROS,
    grid: int = _BASE_GRID,
    functions: int = 4,
    block: int = 128,
    words: int = 1,
) -> tuple[Item, ...]:
    return tuple(Item("kernel", micros, grid, block, i % functions, words) for i in range(count))


def _with(
    kind: Kind, every: int, *, size: int = 64, count: int = 200, micros: float = _BASE_MICROS, grid: int = _BASE_GRID
) -> tuple[Item, ...]:
    items = list(_kernels(count, micros=micros, grid=grid))
    for place in range(count, 0, -every):
        items.insert(place, Item(kind, size=size))
    return tuple(items)


_CHOICES: Final[dict[str, Any]] = {
    "grid": (1, 2, 4, 8, 16, 32, 64, 128, 264, 528),
    "block": (64, 128, 256, 512),
    "function": (0, 1, 2, 3),
    "words": (1, 1, 4),
    "micros": (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 12.0),
}


def _varied(count: int, seed: int, *properties: str) -> tuple[Item, ...]:
    draw = random.Random(seed)  # noqa: S311 - a reproducible mixture, no secret
    return tuple(Item("kernel", **{name: draw.choice(_CHOICES[name]) for name in properties}) for _ in range(count))


def _mixed(count: int, seed: int) -> tuple[Item, ...]:
    draw = random.Random(seed + 1)  # noqa: S311 - a reproducible mixture, no secret
    items = list(_varied(count, seed, *_CHOICES))
    for place in sorted(draw.sample(range(count), count // 20), reverse=True):
        items.insert(place, Item(draw.choice(("memset", "copy")), size=draw.choice((4, 64, 4096))))
    return tuple(items)


def graph_recipes(*, dependent_launch: bool) -> list[Recipe]:
    """Return the chains that are captured into graphs; those with early launches only where the GPU has them."""
    recipes = [Recipe(f"nodes_{count}", _kernels(count)) for count in (50, 200, 500, 1500)]
    recipes += [Recipe(f"micros_{micros:g}", _kernels(200, micros=micros)) for micros in (0.0, 2.0, 5.0, 10.0, 20.0)]
    recipes += [
        Recipe(f"grid_{grid}", _kernels(200, micros=2.0, grid=grid)) for grid in (1, 4, 16, 132, 264, 528, 1056)
    ]
    recipes += [
        Recipe("grid_1_functions_1", _kernels(200, grid=1, functions=1)),
        Recipe("grid_1_long", _kernels(200, micros=10.0, grid=1)),
    ]
    recipes += [
        Recipe("block_512", _kernels(200, grid=132, block=512)),
        Recipe("words_64", _kernels(200, grid=264, words=64)),
    ]
    recipes += [Recipe("functions_1", _kernels(200, functions=1)), Recipe("wide", (Item("wide"),) * 200)]
    recipes += [Recipe(f"memset_every_{every}", _with("memset", every)) for every in (4, 20, 100)]
    recipes += [Recipe(f"memset_{size}", _with("memset", 20, size=size)) for size in (4, 4096, 16384, 65536)]
    recipes += [
        Recipe("memset_wide_grid", _with("memset", 20, grid=528)),
        Recipe("memset_long", _with("memset", 20, micros=10.0)),
    ]
    recipes += [Recipe(f"copy_every_{every}", _with("copy", every)) for every in (4, 20)]
    recipes += [Recipe("copy_64k", _with("copy", 8, size=65536)), Recipe("branches_2", _kernels(200), branches=2)]
    recipes += [Recipe(f"mixed_{count}", _mixed(count, count)) for count in (60, 300, 600)]
    recipes += [Recipe(f"varied_{name}", _varied(200, 1, name)) for name in _CHOICES]
    recipes += [
        Recipe(
            "varied_short", tuple(replace(item, micros=0.0) for item in _varied(300, 4, "grid", "block", "function"))
        )
    ]
    recipes += [
        Recipe("varied_all", _varied(300, 300, *_CHOICES)),
        Recipe("varied_but_block", _varied(300, 2, "grid", "function", "words", "micros")),
    ]
    recipes += [
        Recipe(f"stamped_{grid}", tuple(Item("stamped", micros, grid) for micros in (1.0, 4.0) * 50))
        for grid in (1, 64, 528)
    ]
    if dependent_launch:
        recipes += [
            Recipe(f"dependent_{micros:g}", (Item("kernel", micros), *[Item("dependent", micros)] * 199))
            for micros in (1.0, 3.0)
        ]
    return recipes


def eager_recipes() -> list[Recipe]:
    """Return the chains that are launched one by one behind a kernel that keeps the GPU busy."""
    chains = {
        "eager_1us": _kernels(200, micros=1.0),
        "eager_5us": _kernels(200, micros=5.0),
        "eager_grid_528": _kernels(200, grid=528),
    }
    chains |= {
        "eager_memset": _with("memset", 4, count=160),
        "eager_copy": _with("copy", 4, count=160),
        "eager_mixed": _mixed(200, 7),
    }
    return [Recipe(name, items) for name, items in chains.items()]
