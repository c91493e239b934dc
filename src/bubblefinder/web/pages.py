"""The pages people read. Each works without JavaScript; scripts add drag and drop, progress and the timeline."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from bubblefinder.compare.trend import MOST_RUNS
from bubblefinder.web.answers import kept, of_runs
from bubblefinder.web.api import shown
from bubblefinder.web.bodies import fields_of
from bubblefinder.web.form import receive_form
from bubblefinder.web.legend import LEGEND
from bubblefinder.web.orders import BODY, WAITING
from bubblefinder.web.pieces import Piece, Pieced, piece
from bubblefinder.web.render import COOKIE, page, pieced_page, row
from bubblefinder.web.safety import address, same, session
from bubblefinder.web.service import Service, service
from bubblefinder.web.shelf import SORTS
from bubblefinder.web.store import OPEN_STATES
from bubblefinder.web.trend import METRICS, Move, Point, chart, commits, moves, words
from bubblefinder.web.uploads import said

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from starlette.requests import Request

    from bubblefinder.render.kit.chart import Chart


PER_PAGE: Final = 50
_PAGE_DIGITS: Final = 6
_CHOICES: Final = 100
_COOKIE_S: Final = 30 * 86_400


async def index(request: Request) -> Pieced:
    """Show where to drop a trace, and the runs."""
    here = service(request)
    query = request.query_params
    search = query.get("search", "")[:200]
    sort = query.get("sort", "created") if query.get("sort") in SORTS else "created"
    ascending = query.get("order") == "asc"
    number = _page_number(query.get("page", "1"))
    label = query.get("label") or None
    runs, total = here.store.shelf.listed(
        search=search, label=label, sort=sort, descending=not ascending, limit=PER_PAGE, offset=(number - 1) * PER_PAGE
    )
    rows = here.pieces.groups(("row",), [(run, here.store.shelf.before(run)) for run in runs], partial(row, "run_row"))
    return pieced_page(
        request, "index.html", blocks={"rows": rows}, pieces=here.pieces,
        limits=here.limits, folder=here.folder.root, labels=here.store.shelf.labels(),
        can_compare=sum(run.state == "done" for run in runs) > 1, total=total, search=search, label=label,
        sort=sort, ascending=ascending, number=number, pages=-(-total // PER_PAGE), host=request.url.netloc,
    )  # fmt: skip


def _page_number(given: str) -> int:
    return max(int(given), 1) if given.isdecimal() and len(given) <= _PAGE_DIGITS else 1


async def upload(request: Request) -> Response:
    """Take the form of a browser without JavaScript."""
    here = service(request)
    run = await receive_form(request, here.intake)
    await here.jobs.added()
    return RedirectResponse(f"/runs/{run.id}" + ("?then=diff" if run.baseline else ""), 303)


async def show_run(request: Request) -> Response:
    """Show a run: its progress, its failure, or its report; after an upload with a baseline, what changed."""
    here = service(request)
    run = here.run(request.path_params["run_id"])
    baseline = here.store.get(run.baseline) if run.baseline else None
    awaited = baseline if request.query_params.get("then") == "diff" else None
    is_busy = run.state in OPEN_STATES or (run.state == "done" and awaited and awaited.state in OPEN_STATES)
    if run.state != "done" or is_busy:
        return page(request, "progress.html", run=run, is_busy=is_busy, baseline=awaited, facts=shown(here, run))
    if awaited and awaited.state == "done":
        return RedirectResponse(f"/diff?base={awaited.id}&head={run.id}", 303)
    others = [one for one in here.store.shelf.listed(states=["done"], limit=_CHOICES)[0] if one.id != run.id]
    return page(
        request,
        "run.html",
        run=run,
        body=here.report_file(run, BODY).read_text(encoding="utf-8"),
        baseline=baseline,
        before=here.store.shelf.before(run),
        others=others,
        keep_days=round(here.limits.keep_s / 86_400),
    )


async def show_timeline(request: Request) -> Response:
    """Show the timeline, whose windows the script loads as they come into view."""
    run = service(request).finished(request.path_params["run_id"])
    return page(request, "timeline.html", run=run, legend=LEGEND)


async def delete_run(request: Request) -> Response:
    """Delete a run and go back to the list."""
    here = service(request)
    await here.delete(here.run(request.path_params["run_id"]).id)
    return RedirectResponse("/", 303)


async def edit_run(request: Request) -> Response:
    """Change what people say of a run, and show it."""
    here = service(request)
    run = here.run(request.path_params["run_id"])
    given = await fields_of(request)
    words = {name: said(name, given[name]) for name in ("label", "commit", "note") if name in given}
    here.store.edit(run.id, kept="kept" in given, **words)
    return RedirectResponse(f"/runs/{run.id}", 303)


async def cancel_run(request: Request) -> Response:
    """Stop a run and show it."""
    here = service(request)
    run = here.run(request.path_params["run_id"])
    await here.jobs.cancel(run.id)
    return RedirectResponse(f"/runs/{run.id}", 303)


async def show_diff(request: Request) -> Response:
    """Show what changed between two runs, or two groups of runs."""
    here = service(request)
    base, head = (here.comparer.side(request.query_params.getlist(side)) for side in ("base", "head"))
    async with here.comparer.compared(base, head) as folder:
        body = (folder / BODY).read_text(encoding="utf-8")
    return page(request, "diff.html", base=base, head=head, body=body, query=request.url.query)


async def show_trend(request: Request) -> Pieced:
    """Show a metric over the runs of a label."""
    here = service(request)
    labels, label = _label_of(request)
    metric = request.query_params.get("metric", "")
    metric = metric if metric in METRICS else next(iter(METRICS))
    found = here.store.of_label(label, metric, WAITING, limit=MOST_RUNS)
    points = [Point(run, value, waiting) for run, (value, waiting) in found]
    moved = moves(points, metric)
    drawn = chart(points, moved)
    blocks = {"dots": _dots(here, points, drawn, moved, metric), "rows": _point_rows(here, points, metric)}
    return pieced_page(
        request, "trend.html", blocks=blocks, pieces=here.pieces, labels=labels, label=label, metrics=METRICS,
        metric=metric, points=points, moves=moved, chart=drawn, commits=commits(points, drawn, moved), most=MOST_RUNS,
        ticks=[(y, words(number, metric)) for y, number in drawn.ticks],
    )  # fmt: skip


def _label_of(request: Request) -> tuple[tuple[str, ...], str]:
    """Return all labels, and that of the trend asked for."""
    labels = tuple(service(request).store.shelf.labels())
    return labels, request.query_params.get("label") or next(iter(labels), "")


def _of_trend(request: Request) -> Hashable:
    """Return the version of what a trend's page follows from."""
    labels, label = _label_of(request)
    return labels, service(request).store.shelf.version(label)


def _point_rows(here: Service, points: Sequence[Point], metric: str) -> list[Piece]:
    """Return the table of a trend, newest first."""
    items = [
        (one.run, one.value, before and before.run, before and before.value)
        for before, one in pairwise([None, *points])
        if one
    ]
    return here.pieces.groups(("point row", metric), items[::-1], partial(row, "point_row", metric))


def _dots(here: Service, points: Sequence[Point], drawn: Chart, moved: Sequence[Move], metric: str) -> list[Piece]:
    """Return the dots of a trend, each a link to its run, at places that change with every run that comes."""
    begun, make = {move.at: move for move in moved}, partial(row, "trend_dot", metric)
    made = []
    for dot in drawn.dots:
        point = points[dot.index]
        shown = here.pieces.of(("dot", metric, point.run.id), (point.run, point.value, begun.get(dot.index)), make)
        made.append(f'<g transform="translate({dot.x:.1f} {dot.y:.1f})">{shown}</g>\n')
    return [piece("".join(made))] if made else []


async def show_login(request: Request) -> Response:
    """Ask for the token."""
    return page(request, "login.html", wrong=False)


async def login(request: Request) -> Response:
    """Set the cookie of somebody who knows the token."""
    here = service(request)
    sender = address(request)
    here.guesses.check(sender)
    with here.guesses.signing_in(sender):
        given = (await fields_of(request)).get("token", "")
    if here.token is None or not same(given, here.token):
        here.guesses.wrong(sender)
        return page(request, "login.html", status=401, wrong=True)
    answer = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, session(here.token), max_age=_COOKIE_S, httponly=True, samesite="strict", secure=secure)
    return answer


async def logout(_request: Request) -> Response:
    """Take the cookie back."""
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


ROUTES: Final = [
    Route("/", kept(of_runs, index)),
    Route("/upload", upload, methods=["POST"]),
    Route("/runs/{run_id}", show_run),
    Route("/runs/{run_id}/timeline", show_timeline),
    Route("/runs/{run_id}/delete", delete_run, methods=["POST"]),
    Route("/runs/{run_id}/edit", edit_run, methods=["POST"]),
    Route("/runs/{run_id}/cancel", cancel_run, methods=["POST"]),
    Route("/diff", show_diff),
    Route("/trend", kept(_of_trend, show_trend)),
    Route("/login", show_login),
    Route("/login", login, methods=["POST"]),
    Route("/logout", logout, methods=["POST"]),
]
