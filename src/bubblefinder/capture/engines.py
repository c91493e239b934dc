"""How each serving engine opens the profiler's range, and how to have it name its own work."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec

from bubblefinder.errors import UsageError
from bubblefinder.trace.programs import same_program

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Engine:
    """A program that decodes.

    Attributes:
        name: what to call it on the command line.
        hints: how the range is opened, and what else to know, one sentence each.
        packs: the rule packs whose functions name its work; all where none is known.
        sign: what its command line looks like, as a regular expression; null for no engine.
    """

    name: str
    hints: tuple[str, ...]
    packs: tuple[str, ...] = ()
    sign: str | None = None


ENGINES: Final = msgspec.toml.decode(
    (files("bubblefinder.capture") / "engines.toml").read_bytes(), type=dict[str, list[Engine]]
)["engine"]


def engine_of(command: Sequence[str], named: str | None = None) -> Engine:
    """Return the engine of a name, else the one that a command line shows, else plain PyTorch.

    Raises:
        UsageError: there is no engine of that name.
    """
    if named is not None:
        found = next((engine for engine in ENGINES if same_program(engine.name) == same_program(named)), None)
        if found is None:
            names = ", ".join(engine.name for engine in ENGINES)
            raise UsageError(f"--engine {named!r} is not a known engine", hint=f"use {names}")
        return found
    text = " ".join(command)
    return next((engine for engine in ENGINES if engine.sign and re.search(engine.sign, text)), ENGINES[-1])
