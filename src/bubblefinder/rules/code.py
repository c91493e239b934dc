"""The few checks that conditions can't express. A rule asks for one by name: ``code = "plan-reads"``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.causes.facts import SiteFacts
    from bubblefinder.rules.subjects import Subject

    Check = Callable[[Any, int], bool]

CODE: Final[dict[str, Check]] = {}

_PLAN_READS: Final = range(2, 5)
_BLOCK: Final = 16


def check(name: str) -> Callable[[Check], Check]:
    """Register a check ``(subject, batch) -> bool`` under the name that packs use."""

    def register(function: Check) -> Check:
        CODE[name] = function
        return function

    return register


@check("plan-reads")
def plan_reads(site: SiteFacts, batch: int) -> bool:
    """Return whether a group of waits looks like FlashInfer's plan().

    It reads two to four index arrays back to back, with no kernel launched between them, each a blocking pageable copy
    to the host of at most 4 x (16 x batch + 1) bytes, and then uploads what it planned on the same stream.
    """
    limit = 4 * (_BLOCK * batch + 1)
    reads = site.members or (site,)
    return (
        round(sum(read.per_step_count or 0 for read in reads)) in _PLAN_READS
        and all((read.copy_kind, read.memory_kind) == ("DtoH", "pageable") for read in reads)
        and all(read.bytes is not None and read.bytes <= limit for read in reads)
        and len({read.kernels_before for read in reads}) == 1
        and "HtoD" in reads[-1].copies_after
    )


def holds(name: str | None, subject: Subject, batch: int) -> bool:
    """Return whether the named check holds; a rule without one asks for nothing."""
    return name is None or CODE[name](subject, batch)
