from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.web.bodies import Bodies, Body
from bubblefinder.web.limits import Limits, RefusedError
from tests.web import asynchronous

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send


def drip(pieces: int, size: int, pause_s: float) -> Receive:
    left = [pieces]

    async def receive() -> Message:
        await asyncio.sleep(pause_s)
        left[0] -= 1
        return {"type": "http.request", "body": bytes(size), "more_body": left[0] > 0}

    return receive


async def whole(body: Body) -> int:
    total = 0
    while not body.ended:
        total += len((await body.receive())["body"])
    return total


@asynchronous
async def test_an_upload_that_stalls_is_given_up() -> None:
    with pytest.raises(RefusedError, match="stalled") as refused:
        await whole(Body(drip(3, 10, 5), Limits(stall_s=0.05), is_upload=True))
    assert refused.value.status == 408


@asynchronous
async def test_an_upload_that_drips_is_given_up() -> None:
    with pytest.raises(RefusedError, match="too slow"):
        await whole(Body(drip(1000, 1, 0.01), Limits(stall_s=0.1, slow_bytes_s=1000), is_upload=True))


@asynchronous
async def test_a_steady_upload_passes_whole() -> None:
    limits = Limits(stall_s=0.5, slow_bytes_s=1000, form_s=0.01)  # a busy machine is late by a tenth of a second
    assert await whole(Body(drip(20, 1000, 0.03), limits, is_upload=True)) == 20_000


@asynchronous
async def test_any_other_body_has_to_be_there_in_seconds_however_it_drips() -> None:
    with pytest.raises(RefusedError, match="stalled"):
        await whole(Body(drip(1000, 1, 0.01), Limits(form_s=0.1), is_upload=False))


@asynchronous
async def test_time_that_the_server_takes_is_not_the_senders() -> None:
    body = Body(drip(5, 1, 0), Limits(form_s=0.2), is_upload=False)
    while not body.ended:
        await body.receive()
        await asyncio.sleep(0.1)


async def asked(headers: list[tuple[bytes, bytes]], source: Receive, path: str = "/api/runs") -> list[Message]:
    """What comes of a refusal that reads nothing of the body."""
    sent: list[Message] = []

    async def refuse(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 507, "headers": []})
        await send({"type": "http.response.body", "body": b"no room"})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "PUT", "path": path, "headers": headers}
    await Bodies(refuse, Limits(linger_s=0.3, form_s=0.1))(scope, source, send)
    return sent


@asynchronous
async def test_what_a_refused_client_still_sends_is_taken_in_after_the_answer() -> None:
    source = drip(20, 100_000, 0.001)
    _, answer, end = await asked([], source)
    assert (answer["body"], answer["more_body"]) == (b"no room", True)
    assert not end["more_body"]


@pytest.mark.parametrize("path", ["/api/runs", "/login"])
@asynchronous
async def test_a_refused_client_that_never_stops_is_left(path: str) -> None:
    async with asyncio.timeout(5):
        sent = await asked([], drip(10_000_000, 1, 0.01), path)
    assert not sent[-1].get("more_body")


@asynchronous
async def test_a_client_that_waits_to_be_told_to_send_is_not_made_to() -> None:
    async def never() -> Message:
        raise AssertionError("the body was asked for")

    assert len(await asked([(b"expect", b"100-continue")], never)) == 3
