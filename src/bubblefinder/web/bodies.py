"""Bodies of requests: none without a clock, and none cut off before its sender has read why it is refused."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect

from bubblefinder.web.limits import Limits, RefusedError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_FORM_BYTES: Final = 8_192
UPLOADS: Final = {("PUT", "/api/runs"), ("POST", "/upload")}


class Bodies:
    """ASGI middleware around everything that may read a body or refuse one.

    An upload may take its time as long as it flows; any other body is a small form that has to be there in seconds.
    A client that is refused half way still sends, and many read no answer before they are done: what it sends is
    thrown away for a while, so that it learns the reason and not of a broken connection. No more than a quarter of
    all connections linger so, since anybody can be refused.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._lingering = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a clock on its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_upload = (scope["method"], scope["path"]) in UPLOADS
        body = Body(receive, self._limits, is_upload=is_upload, is_held_back=_is_held_back(scope))

        async def lingering(message: Message) -> None:
            is_last = message["type"] == "http.response.body" and not message.get("more_body")
            if not is_last or body.ended or self._lingering >= self._limits.connections // 4:
                await send(message)
                return
            await send({**message, "more_body": True})
            self._lingering += 1
            try:
                await body.drain()
            finally:
                self._lingering -= 1
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self._app(scope, body.receive, lingering)


@dataclass(slots=True)
class Body:
    """The body of one request as it arrives; only time spent waiting for the sender counts.

    A body is `is_held_back` while its sender waits to be told to go on (Expect: 100-continue).
    """

    source: Receive
    limits: Limits
    is_upload: bool
    is_held_back: bool = False
    ended: bool = False
    _received: int = 0
    _waited_s: float = 0.0

    async def receive(self) -> Message:
        """Return the next piece.

        Raises:
            RefusedError: it stalls or drips.
        """
        if self.ended:
            return await self.source()
        self.is_held_back = False
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._patience()):
                message = await self.source()
        except TimeoutError as error:
            raise RefusedError(408, "The request stalled.", hint="Send it again.") from error
        self._waited_s += time.monotonic() - begun
        self._received += len(message.get("body", b""))
        self.ended = message["type"] != "http.request" or not message.get("more_body", False)
        self._check_pace()
        return message

    async def drain(self) -> None:
        """Throw away what still comes, for as long as one waits for a sender to read an answer."""
        if self.is_held_back:
            return
        longest = self.limits.linger_s if self.is_upload else self.limits.form_s
        try:
            async with asyncio.timeout(longest):
                while not self.ended:
                    await self.receive()
        except (TimeoutError, RefusedError):
            return

    def _patience(self) -> float:
        return self.limits.stall_s if self.is_upload else max(self.limits.form_s - self._waited_s, 0)

    def _check_pace(self) -> None:
        slow = self._received < self._waited_s * self.limits.slow_bytes_s
        if self.is_upload and not self.ended and self._waited_s > self.limits.stall_s and slow:
            raise RefusedError(408, "The upload is too slow.", hint="Upload over a faster line.")


async def body_of(request: Request) -> bytes:
    """Return the body of a small form.

    Raises:
        RefusedError: it is long, or was cut short.
    """
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > _FORM_BYTES:
                raise RefusedError(413, "The form is too long.")
    except ClientDisconnect as error:
        raise RefusedError(400, "The form was cut short.") from error
    return body


async def fields_of(request: Request) -> dict[str, str]:
    """Return the fields of a small form; of one that repeats, the last."""
    return dict(parse_qsl((await body_of(request)).decode(errors="replace"), keep_blank_values=True, max_num_fields=20))


def _is_held_back(scope: Scope) -> bool:
    return any(name == b"expect" and value.lower() == b"100-continue" for name, value in scope["headers"])
