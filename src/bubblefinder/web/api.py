"""The API: what programs, and the scripts of the pages, talk to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from bubblefinder.web.answers import kept, of_label, of_runs
from bubblefinder.web.bodies import body_of
from bubblefinder.web.events import window
from bubblefinder.web.limits import RefusedError
from bubblefinder.web.look import find, sums
from bubblefinder.web.orders import DIFF_OUTPUTS, EVENTS, STAGES
from bubblefinder.web.pieces import Pieced, piece
from bubblefinder.web.safety import ALONE
from bubblefinder.web.service import Service, damaged_report, service
from bubblefinder.web.trend import METRICS
from bubblefinder.web.uploads import Wanted, file_name, said, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from bubblefinder.web.shelf import StoredRun

_TYPES: Final = {
    "json": "application/json",
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "perfetto.json.gz": "application/gzip",
}
"""What a stored report or comparison is, by how its name ends."""
_SOUGHT_CHARACTERS: Final = 200
_LISTED: Final = (
    "id", "name", "label", "commit", "note", "kept", "baseline", "state", "error", "hint", "gpu", "nsys", "step_p50_ns",
    "bubble_share", "at_least", "verdict", "created_s", "finished_s",
)  # fmt: skip


async def put_run(request: Request) -> Response:
    """Take a trace as the raw body and queue it."""
    here = service(request)
    query = request.query_params
    wanted = Wanted(
        file_name(query.get("name")), text(query.get("label")), text(query.get("commit")), query.get("baseline") or None
    )
    run = await here.intake.receive(request.stream(), wanted, request.headers.get("content-length"))
    await here.jobs.added()
    return JSONResponse({"id": run.id, "url": f"/runs/{run.id}"}, 202, {"location": f"/runs/{run.id}"})


async def list_runs(request: Request) -> Pieced:
    """List runs, newest first; how far a job is isn't in the list, so that it can be kept."""
    here = service(request)
    found, total = here.store.shelf.listed(search=request.query_params.get("search", ""))
    runs = here.pieces.groups(("listed",), [(run,) for run in found], lambda run: _packed(listed(run)), ",")
    return Pieced([piece(f'{{"total":{total},"runs":['), *runs, piece("]}")], "application/json")


async def get_run(request: Request) -> Response:
    """Say how a run is doing."""
    here = service(request)
    return JSONResponse(shown(here, here.run(request.path_params["run_id"])))


async def edit_run(request: Request) -> Response:
    """Change the label, the commit, the note of a run, or whether it is kept."""
    here = service(request)
    run = here.run(request.path_params["run_id"])
    here.store.edit(run.id, **_edited(await body_of(request)))
    return JSONResponse(shown(here, here.run(run.id)))


def _edited(body: bytes) -> dict[str, Any]:
    """Return the columns that a body of JSON changes.

    Raises:
        RefusedError: it is no object of these fields.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    kinds = {"label": str | None, "commit": str | None, "note": str | None, "kept": bool}
    if not isinstance(given, dict) or not all(isinstance(given[name], kinds.get(name, ())) for name in given):
        raise RefusedError(
            400, "This is no change of a run.", hint='Send: {"label", "commit", "note": text, "kept": true}'
        )
    return {name: value if name == "kept" else said(name, value) for name, value in given.items()}


async def delete_run(request: Request) -> Response:
    """Delete a run and everything stored of it."""
    here = service(request)
    await here.delete(here.run(request.path_params["run_id"]).id)
    return Response(status_code=204)


async def cancel_run(request: Request) -> Response:
    """Stop a run that waits or is worked on."""
    here = service(request)
    run = here.run(request.path_params["run_id"])
    await here.jobs.cancel(run.id)
    return JSONResponse(shown(here, here.run(run.id)))


async def get_report(request: Request) -> Response:
    """Send a finished report."""
    here = service(request)
    suffix = request.path_params["suffix"]
    if suffix not in _TYPES:
        raise RefusedError(404, "There is no such report format.", hint="Formats: " + ", ".join(_TYPES))
    run = here.finished(request.path_params["run_id"])
    return FileResponse(
        here.report_file(run, f"report.{suffix}"),
        media_type=_TYPES[suffix],
        filename=f"{run.name}.report.{suffix}",
        content_disposition_type="inline",
        headers={"content-security-policy": ALONE},
    )


async def get_window(request: Request) -> Response:
    """Send what to draw of a run between two moments."""
    return await _looked(request, window, *_range(request))


async def get_find(request: Request) -> Response:
    """Send where an event with a text in its name comes next, and how many there are."""
    text = request.query_params.get("text", "")[:_SOUGHT_CHARACTERS]
    if not text.strip():
        raise RefusedError(400, "There is nothing to search for.", hint="Give text.")
    return await _looked(request, find, text, _moment(request, "at") or 0)


async def get_sums(request: Request) -> Response:
    """Send what lies between two moments, summed by track and by name."""
    start, end = _range(request)
    if start is None or end is None:
        raise RefusedError(400, "A range has two ends.", hint="Give start and end in ns.")
    return await _looked(request, sums, start, end)


async def _looked(request: Request, look: Callable[..., dict[str, Any]], *asked: Any) -> Response:  # noqa: ANN401
    """Send what a run's events say; its files are read in another thread."""
    here = service(request)
    events = here.report_file(here.finished(request.path_params["run_id"]), EVENTS)
    try:
        said = await run_in_threadpool(look, events, *asked)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise damaged_report() from error
    return Response(json.dumps(said, separators=(",", ":")), media_type="application/json")


def _range(request: Request) -> tuple[int | None, int | None]:
    start, end = (_moment(request, name) for name in ("start", "end"))
    if start is not None and end is not None and start >= end:
        raise RefusedError(400, "The window ends before it starts.", hint="Give start and end in ns.")
    return start, end


async def get_diff(request: Request) -> Response:
    """Compare runs: `base` and `head` may be repeated."""
    here = service(request)
    query = request.query_params
    name = query.get("format", "json")
    if name not in DIFF_OUTPUTS:
        raise RefusedError(404, "There is no such format.", hint="Formats: " + ", ".join(DIFF_OUTPUTS))
    base, head = (here.comparer.side(query.getlist(side)) for side in ("base", "head"))
    async with here.comparer.compared(base, head) as folder:
        content = (folder / DIFF_OUTPUTS[name]).read_bytes()
    media_type = _TYPES[DIFF_OUTPUTS[name].removeprefix("diff.")]
    return Response(content, media_type=media_type, headers={"content-security-policy": ALONE})


async def get_trend(request: Request) -> Pieced:
    """Send a metric of the runs with a label, oldest first."""
    here = service(request)
    metric = request.query_params.get("metric", next(iter(METRICS)))
    found = here.store.of_label(request.query_params.get("label", ""), metric)

    def text(run: StoredRun, value: float | None) -> str:
        return _packed({"id": run.id, "created_s": run.created_s, "commit": run.commit, "value": value})

    points = here.pieces.groups(("point", metric), [(run, value) for run, (value,) in found], text, ",")
    return Pieced([piece(f'{{"metric":{_packed(metric)},"points":['), *points, piece("]}")], "application/json")


def _packed(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def listed(run: StoredRun) -> dict[str, Any]:
    """Return what a list says of a run."""
    return {name: getattr(run, name) for name in _LISTED} | {"url": f"/runs/{run.id}"}


def shown(here: Service, run: StoredRun) -> dict[str, Any]:
    """Return what the API says of one run."""
    done = len(STAGES) if run.state == "done" else 0
    progress: dict[str, Any] = {"stage": None, "stages": STAGES, "done": done}
    if run.state == "running" and (attempt := here.jobs.attempts.get(run.id)):
        worker = attempt.worker
        progress |= {"elapsed_s": round(attempt.elapsed_s, 1), "stage_s": round(worker.stage_s, 1)}
        if worker.stage:
            progress |= {"stage": worker.stage, "done": STAGES.index(worker.stage)}
    return listed(run) | {"progress": progress} | _waiting(here, run)


def _waiting(here: Service, run: StoredRun) -> dict[str, Any]:
    if run.state != "queued":
        return {}
    full = {"waits_for": "room on the server's disk"} if here.jobs.without_room else {}
    return {"ahead": here.store.ahead_of(run)} | full


def _moment(request: Request, name: str) -> int | None:
    given = request.query_params.get(name)
    if given is None:
        return None
    digits = given.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 19):  # noqa: PLR2004 - fits 64 bits
        raise RefusedError(400, f"{name} is not a time in ns.", hint="Give a whole number.")
    return int(given)


ROUTES: Final = [
    Route("/api/runs", put_run, methods=["PUT"]),
    Route("/api/runs", kept(of_runs, list_runs)),
    Route("/api/runs/{run_id}", get_run),
    Route("/api/runs/{run_id}", edit_run, methods=["PATCH"]),
    Route("/api/runs/{run_id}", delete_run, methods=["DELETE"]),
    Route("/api/runs/{run_id}/cancel", cancel_run, methods=["POST"]),
    Route("/api/runs/{run_id}/report.{suffix:path}", get_report),
    Route("/api/runs/{run_id}/window", get_window),
    Route("/api/runs/{run_id}/find", get_find),
    Route("/api/runs/{run_id}/sums", get_sums),
    Route("/api/diff", get_diff),
    Route("/api/trend", kept(of_label, get_trend)),
]
