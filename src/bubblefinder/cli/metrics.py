"""`bubblefinder metrics`: every number that can be budgeted, tracked or gated."""

from __future__ import annotations

from typing import Annotated

import typer


def metrics(
    json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List what can be limited, gated and tracked.

    Of every metric: id, unit, which direction is better, what it can be selected by, and its meaning.
    """
    from bubblefinder.compare.metrics import METRICS, SERVING
    from bubblefinder.render.kit.sheet import Table
    from bubblefinder.render.kit.text import draw, page_width

    known = (*METRICS.values(), *SERVING.values())
    if json:
        from bubblefinder.report.json import render

        told = [{f: getattr(m, f) for f in ("id", "unit", "better", "dimensions", "meaning")} for m in known]
        typer.echo(render(told), nl=False)
        return
    rows = [(m.id, m.unit, m.better, ", ".join(m.dimensions), m.meaning) for m in known]
    header = ("id", "unit", "better", "where", "meaning")
    typer.echo(draw(Table("Metrics", header, rows, left=header), page_width()))
