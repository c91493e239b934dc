"""Uvicorn around the application: one process, a socket that is bound before anything else, patience that ends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from bubblefinder.web.app import create_app

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Sequence

    from bubblefinder.web.limits import Limits
    from bubblefinder.web.service import Service


def run(listeners: Sequence[socket.socket], service: Service, limits: Limits, proxies: Sequence[str] = ()) -> None:
    """Serve a service on bound sockets until interrupted; `proxies` are addresses whose word on others is taken."""
    config = uvicorn.Config(
        create_app(service),
        http=Patient,
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        limit_concurrency=limits.connections,
        timeout_keep_alive=int(limits.header_s),
        timeout_graceful_shutdown=3,
    )
    uvicorn.Server(config).run(sockets=list(listeners))


class Patient(H11Protocol):
    """Closes a connection whose request's head isn't there within the keep-alive time.

    Uvicorn itself waits for a head for as long as a client cares to drip it, and turns newcomers away while silent
    connections take all places.
    """

    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock for the first head, and where there is no place left take that of who waits longest."""
        super().connection_made(transport)
        self._watch()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            others = [one for one in self.connections if isinstance(one, Patient) and one is not self]
            longest = min(others, key=Patient.hangs_up_at, default=None)
            if longest is not None and longest.deadline is not None:
                longest.transport.close()
                self.connections.discard(longest)

    def hangs_up_at(self) -> float:
        """Return when the clock runs out, in the loop's time; never while a request is answered."""
        return self.deadline.when() if self.deadline is not None else math.inf

    def data_received(self, data: bytes) -> None:
        """Pass on what came, and see whether a head was completed or begun."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Start the clock for the next head."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Let the clock run between requests, and stop it while one is answered."""
        answering: RequestResponseCycle | None = self.cycle
        if answering is not None and not answering.response_complete:
            self._stop()
        elif self.deadline is None:
            self.deadline = self.loop.call_later(self.timeout_keep_alive, self.transport.close)

    def _stop(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
