from __future__ import annotations

import re
from collections import Counter

from bubblefinder.render.kit import palette
from bubblefinder.render.kit.html import style
from bubblefinder.web.legend import LEGEND, MIXED
from bubblefinder.web.render import STATIC
from bubblefinder.web.tracks import KINDS


def test_every_kind_of_event_has_one_colour_and_every_colour_one_meaning() -> None:
    assert Counter(kind for entry in LEGEND for kind in entry.kinds) == Counter([*KINDS, MIXED])
    assert len({entry.colour for entry in LEGEND}) == len({entry.words for entry in LEGEND}) == len(LEGEND)


def test_the_colours_are_those_of_the_report_and_its_swatches() -> None:
    sheet = style() + (STATIC / "app.css").read_text()
    colours = {entry.colour for entry in LEGEND}
    assert colours <= (palette.COLOURS | palette.CHART).keys()
    assert colours <= set(re.findall(r"\.f-(\w+) ?\{", sheet))


def test_dense_tracks_are_drawn_in_colours_of_the_legend() -> None:
    script = (STATIC / "timeline.js").read_text()
    (groups,) = re.findall(r"\{ (nvtx: .*) \}\[track\.group\]", script)
    assert dict(re.findall(r'(\w+): "(\w+)"', groups))["outside"] == MIXED
    assert set(re.findall(r'"(\w+)"', groups)) <= {kind for entry in LEGEND for kind in entry.kinds}
