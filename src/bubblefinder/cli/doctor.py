"""`bubblefinder doctor`: what a capture is and what it can answer."""

from __future__ import annotations

from bubblefinder.cli.arguments import Capture


def doctor(
    trace: Capture,
) -> None:
    """Say what a capture is, and what it can and can't answer.

    The last line is the nsys command that would answer more.
    """
    from bubblefinder.cli.output import stages
    from bubblefinder.render.doctor import examine, print_examination
    from bubblefinder.trace.open import open_trace

    with stages(quiet=False):
        examination = examine(open_trace(trace))
    print_examination(examination)
