"""Tasks that must not end: each is started again after a failure, which is logged and never swallowed."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

PAUSES_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Between attempts at what a full or failing disk refuses: soon at first, then about as often as a person looks."""
_SOUND_S: Final = 60.0
"""A task that has run for so long is sound again: twice the longest pause."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Supervisor:
    """Runs tasks for ever; `failures` counts how often one broke, `_broke` when each did last (monotonic seconds)."""

    failures: int = 0
    _broke: dict[str, float] = field(default_factory=dict)

    async def watch(self, name: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Do `work`, and again each time it ends, until cancelled."""
        in_a_row = 0
        while True:
            begun = time.monotonic()
            task = asyncio.create_task(work())
            try:
                await asyncio.wait({task})
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            self._broke[name] = time.monotonic()
            self.failures += 1
            in_a_row = in_a_row + 1 if self._broke[name] - begun < _SOUND_S else 1
            pause = PAUSES_S[min(in_a_row, len(PAUSES_S)) - 1]
            error = None if task.cancelled() else task.exception()
            _log.error("%s broke and is started again in %s s", name, pause, exc_info=error)
            await asyncio.sleep(pause)

    def ailing(self) -> list[str]:
        """Return the names of the tasks that broke lately."""
        return sorted(name for name, broke in self._broke.items() if time.monotonic() - broke < _SOUND_S)
