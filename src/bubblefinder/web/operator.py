"""For whoever runs the server: is it well, how full is it, what is it at, and what failed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bubblefinder.web.render import page
from bubblefinder.web.service import Service, service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request


_FAILURES: Final = 20


async def healthz(request: Request) -> Response:
    """Say whether the server does its work: 200, or 503 and what ails it. Needs no token and tells no more."""
    here = service(request)
    ails = here.supervisor.ailing()
    if here.folder.free_bytes() < here.limits.spare_bytes:
        ails.append("the disk is full")
    return JSONResponse({"ok": not ails, "ails": ails}, 503 if ails else 200)


async def show_server(request: Request) -> Response:
    """Show what the server is at."""
    here = service(request)
    return page(
        request,
        "server.html",
        limits=here.limits,
        folder=here.folder.root,
        counts=here.store.counts(),
        jobs=[(run, one) for run_id, one in here.jobs.attempts.items() if (run := here.store.get(run_id))],
        waits_for_room=here.jobs.without_room,
        stored=here.folder.stored_bytes(),
        free=here.folder.free_bytes(),
        ails=here.supervisor.ailing(),
        failures=here.supervisor.failures,
        up_s=time.monotonic() - here.begun_s,
        failed=here.store.shelf.listed(states=["failed"], limit=_FAILURES)[0],
    )


async def metrics(request: Request) -> Response:
    """Send the figures of the server page as Prometheus reads them."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest
    from prometheus_client.exposition import CONTENT_TYPE_LATEST

    here = service(request)
    registry = CollectorRegistry()
    runs = Gauge("bubblefinder_runs", "Runs by state.", ["state"], registry=registry)
    for state, number in here.store.counts().items():
        runs.labels(state).set(number)
    for name, words, value in _gauges(here):
        Gauge(f"bubblefinder_{name}", words, registry=registry).set(value)
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


def _gauges(here: Service) -> Iterator[tuple[str, str, float]]:
    longest = max((attempt.elapsed_s for attempt in here.jobs.attempts.values()), default=0.0)
    yield "jobs_at_work", "Jobs that run now.", len(here.jobs.attempts)
    yield "longest_job_seconds", "How long the oldest job at work has run.", longest
    yield "waits_for_room", "1 while jobs wait for room on the disk.", here.jobs.without_room
    yield "stored_bytes", "Bytes of all runs.", here.folder.stored_bytes()
    yield "stored_limit_bytes", "Most bytes that all runs may have.", here.limits.disk_bytes
    yield "disk_free_bytes", "Bytes that the disk has left.", here.folder.free_bytes()
    yield "broken_tasks_total", "How often a task of the server broke and was started again.", here.supervisor.failures
    yield "up_seconds", "Seconds since the server started.", time.monotonic() - here.begun_s


ROUTES: Final = [Route("/healthz", healthz), Route("/server", show_server), Route("/metrics", metrics)]
