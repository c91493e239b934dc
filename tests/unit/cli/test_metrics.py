from __future__ import annotations

import json

from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.compare.metrics import METRICS, SERVING


def test_every_metric_is_listed_and_written() -> None:
    listed = CliRunner().invoke(app, ["metrics"]).output
    known = [*METRICS, *SERVING]
    assert [metric for metric in known if metric not in listed] == []
    told = json.loads(CliRunner().invoke(app, ["metrics", "--json"]).output)
    assert [one["id"] for one in told] == known
    assert {"id", "unit", "better", "dimensions", "meaning"} == set(told[0])
