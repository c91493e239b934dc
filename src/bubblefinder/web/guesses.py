"""Wrong tokens are counted by address: after some, an address has to wait between one and the next."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from bubblefinder.web.limits import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BURST: Final = 10
"""Wrong tokens before an address has to wait: more than somebody who mistypes needs."""
PAUSE_S: Final = 6.0
"""Time that makes good one wrong token: a token of 16 characters can't be guessed at 10 a minute."""
_ADDRESSES: Final = 10_000
_SIGNING_IN: Final = 4
_SIGNING_IN_IN_ALL: Final = 32
_log = logging.getLogger(__name__)


class Guesses:
    """What is held against each address; old and small debts are forgotten, so that memory is bounded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._debts: dict[str, float] = {}
        self._signing_in: dict[str, int] = {}

    def check(self, address: str) -> None:
        """Refuse an address that guessed too often.

        Raises:
            RefusedError: it has to wait.
        """
        wait_s = self._debts.get(address, 0) - self._clock() - (BURST - 1) * PAUSE_S
        if wait_s > 0:
            hint = f"Wait {wait_s:.0f} s, and see that you have the right one."
            raise RefusedError(429, "Too many wrong tokens came from your address.", hint=hint)

    def wrong(self, address: str) -> None:
        """Hold a wrong token against an address."""
        _log.warning("a wrong token came from %s", address)
        self._debts[address] = max(self._debts.get(address, 0), self._clock()) + PAUSE_S
        if len(self._debts) > _ADDRESSES:
            del self._debts[min(self._debts, key=self._debts.__getitem__)]

    @contextmanager
    def signing_in(self, address: str) -> Iterator[None]:
        """Hold a place for somebody who signs in: a few an address, so that nobody takes all connections.

        Raises:
            RefusedError: the places are taken.
        """
        mine = self._signing_in.get(address, 0)
        if mine >= _SIGNING_IN or sum(self._signing_in.values()) >= _SIGNING_IN_IN_ALL:
            raise RefusedError(429, "Too many are signing in at once.", hint="Try again in a few seconds.")
        self._signing_in[address] = mine + 1
        try:
            yield
        finally:
            self._signing_in[address] -= 1
            if not self._signing_in[address]:
                del self._signing_in[address]
