"""The functions of an engine that rules know by name, and the file that makes Nsight Systems open ranges there.

``nsys profile --python-functions-trace=FILE`` wraps each listed function of a stock program in an NVTX range
called ``module.Class.method``, in spawned processes too (docs/engines.md says with which versions that was seen).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import UsageError
from bubblefinder.rules.model import LEADING_NUMBERS
from bubblefinder.rules.suggest import did_you_mean
from bubblefinder.trace.programs import same_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bubblefinder.rules.model import Functions
    from bubblefinder.rules.packs import Packs

DOMAIN: Final = "bubblefinder"
"""The NVTX domain of the ranges."""


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


def functions_file(packs: Packs, wanted: Sequence[str]) -> str:
    """Return the same as the text of the file."""
    return json.dumps(functions_trace(packs, wanted), indent=1) + "\n"


def _by_module(listed: Iterable[Functions]) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for functions in listed:
        mine = found.setdefault(functions.module, [])
        mine += [name for name in functions.names if name not in mine]
    return found


def _versions(wanted: Sequence[str], known: Mapping[str, bool]) -> dict[str, str | None]:
    """Return the version asked for by pack."""
    found, called = dict[str, str | None](), {same_program(pack): pack for pack in known}
    for word in wanted:
        name, equals, version = word.partition("==")
        pack = called.get(same_program(name), name)
        if pack not in known:
            raise UsageError(f"no rule pack {pack!r}{did_you_mean(pack, known)}", hint="see: bubblefinder rules list")
        if not known[pack]:
            named = ", ".join(name for name, has in known.items() if has)
            raise UsageError(f"the pack {pack!r} lists no functions", hint=f"these do: {named}")
        if equals and not LEADING_NUMBERS.match(version):
            raise UsageError(f"{word!r}: {version!r} is no version", hint=f"for example {pack}==1.2.3")
        found[pack] = version if equals else None
    return found
