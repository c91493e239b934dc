"""The functions of an engine that rules know by name, and the file that makes Nsight Systems open ranges there.

``nsys profile --python-functions-trace=FILE`` wraps each listed function of a stock program in an NVTX range
called ``module.Class.method``, in spawned processes too (docs/engines.md says with which versions that was seen).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from bubblefinder.errors import UsageError
from bubblefinder.rules.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from bubblefinder.rules.packs import Packs

DOMAIN: Final = "bubblefinder"
"""The NVTX domain of the ranges."""

_LEADING: Final = re.compile(r"\d+(?:\.\d+)*")

Version = Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)*$")]
Module = Annotated[str, StringConstraints(pattern=r"^[a-z_]\w*(\.\w+)*$")]
Function = Annotated[str, StringConstraints(pattern=r"^\w+(\.\w+)?$")]


class Functions(BaseModel):
    """Functions of one module."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    module: Module = Field(description="where they are defined, as it is imported")
    names: tuple[Function, ...] = Field(min_length=1, description="`function` or `Class.method`; aliases apart")
    about: str | None = Field(default=None, description="what they do in a step")
    since: Version | None = Field(default=None, description="the first version that is known to have them")
    until: Version | None = Field(default=None, description="the first version without them")

    @model_validator(mode="after")
    def _some_version_has_them(self) -> Self:
        if self.since and self.until and _numbers(self.since) >= _numbers(self.until):
            raise ValueError(f"no version lies from {self.since} up to {self.until}")
        return self

    def in_version(self, version: str | None) -> bool:
        """Return whether a version has them, as far as is known; without a version all are wanted."""
        if version is None:
            return True
        asked = _numbers(version)
        return (self.since is None or asked >= _numbers(self.since)) and (
            self.until is None or asked < _numbers(self.until)
        )


def functions_trace(packs: Packs, wanted: Sequence[str]) -> list[dict[str, object]]:
    """Return what ``--python-functions-trace`` reads: one entry a module, in the packs' order.

    Args:
        packs: the packs.
        wanted: names of packs, each with ``==VERSION`` behind it or not; all packs if empty.

    Raises:
        UsageError: a pack is unknown or lists no functions, or a version is none.
    """
    versions = _versions(wanted, {pack.pack: bool(pack.functions) for pack in packs.packs})
    listed = [
        functions
        for pack in packs.packs
        if not wanted or pack.pack in versions
        for functions in pack.functions
        if functions.in_version(versions.get(pack.pack))
    ]
    return [{"module": module, "domain": DOMAIN, "functions": names} for module, names in _by_module(listed).items()]


def _by_module(listed: Iterable[Functions]) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for functions in listed:
        mine = found.setdefault(functions.module, [])
        mine += [name for name in functions.names if name not in mine]
    return found


def _versions(wanted: Sequence[str], known: Mapping[str, bool]) -> dict[str, str | None]:
    """Return the version asked for by pack."""
    found = dict[str, str | None]()
    for word in wanted:
        pack, equals, version = word.partition("==")
        if pack not in known:
            raise UsageError(f"no rule pack {pack!r}{did_you_mean(pack, known)}", hint="see: bubblefinder rules list")
        if not known[pack]:
            named = ", ".join(name for name, has in known.items() if has)
            raise UsageError(f"the pack {pack!r} lists no functions", hint=f"these do: {named}")
        if equals and not _LEADING.match(version):
            raise UsageError(f"{word!r}: {version!r} is no version", hint=f"for example {pack}==1.2.3")
        found[pack] = version if equals else None
    return found


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with: ``0.6.15.post1`` compares as 0.6.15."""
    leading = _LEADING.match(version)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()
