"""What several commands share: options that choose a part of a capture, and progress on the terminal."""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bubblefinder.errors import UsageError
from bubblefinder.units import parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bubblefinder.report.build import Options
    from bubblefinder.report.model import Report
    from bubblefinder.trace.model import Trace


def parse_window(text: str | None) -> tuple[int, int] | None:
    """Return (start_ns, end_ns) for ``1.2s:1.5s``; an empty side means the capture's start or end.

    Raises:
        UsageError: the text is no window.
    """
    if text is None:
        return None
    start, colon, end = text.partition(":")
    first = parse_time(start) if start.strip() else 0
    last = parse_time(end) if end.strip() else 2**62
    if not colon or first is None or last is None or first >= last:
        raise UsageError(f"--window {text!r} is not START:END", hint="for example --window 1.2s:1.5s or 300ms:")
    return first, last


def parse_steps(text: str | None) -> tuple[int, int] | None:
    """Return (first, last) for ``A:B``, B left out as in Python; an empty side means the first or last step.

    Raises:
        UsageError: the text is no range of steps.
    """
    if text is None:
        return None
    start, colon, end = text.partition(":")
    try:
        first, last = int(start or 0), int(end or 2**62)
    except ValueError:
        first, last = 1, 0
    if not colon or first < 0 or first >= last:
        raise UsageError(f"--steps {text!r} is not A:B", hint="for example --steps 2:10 for steps 2 to 9")
    return first, last


def parse_meta(pairs: list[str] | None) -> dict[str, str]:
    """Return the ``key=value`` pairs as a mapping.

    Raises:
        UsageError: a pair has no key or no equals sign.
    """
    found = dict[str, str]()
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"--meta {pair!r} is not key=value")
        found[key] = value
    return found


def terminal_width() -> int | None:
    """Return how many columns the terminal has; null where standard output isn't one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@contextmanager
def stages(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show on a terminal's stderr which stage runs; yields the function to call as each begins."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("load") as status:
        yield status.update


def load_and_analyze(path: Path, options: Callable[[], Options], *, quiet: bool) -> Report:
    """Return the report on the capture at `path`, showing progress.

    The capture is read on another thread while `options` is called, which imports all that will analyse it.
    """
    from concurrent.futures import ThreadPoolExecutor

    with stages(quiet=quiet) as progress, ThreadPoolExecutor(1) as pool:
        loading = pool.submit(_open, path)
        asked = options()
        from bubblefinder.report.build import analyze_trace

        return analyze_trace(loading.result(), asked, progress=progress)


def _open(path: Path) -> Trace:
    from bubblefinder.trace.open import open_trace

    return open_trace(path)
