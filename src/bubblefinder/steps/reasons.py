"""Why a window is no decode step."""

from __future__ import annotations

from typing import Final

HEAD: Final = "head"
TAIL: Final = "tail"
CAPTURE_START: Final = "capture_start"
PREFILL: Final = "prefill"
SET_UP: Final = "set_up"
NO_LOAD: Final = "no_load"
REGIME: Final = "other_regime"
OTHER_WORK: Final = "other_work"
REASONS: Final = (HEAD, TAIL, CAPTURE_START, PREFILL, OTHER_WORK, SET_UP, NO_LOAD, REGIME)
"""Why a window is no decode step of the statistics: the rest of a step that began before the capture; a step without
the gap behind it, at the end or before a wait; a first step that stands out; prefill work, or in a
program that is no language model other work than the steps'; weights, warm-up and graph
captures; a wait for requests; a step of another regime."""
NO_STEP: Final = (HEAD, PREFILL, OTHER_WORK, SET_UP, NO_LOAD)
"""Those of windows that are no step at all."""
