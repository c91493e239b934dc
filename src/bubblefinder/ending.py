"""Ctrl-C, and being told to end: the program ends there and then, without a word, and takes away what it had begun.

Python's way, an exception wherever the program happens to be, is lost where nothing may be raised, such as while a
module is imported or SQLite asks back, and prints a traceback where nobody catches it yet.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_ENDS: Final = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""What ends a program, and how it is met unless the caller wished otherwise: a program behind nohup goes on."""
_BEGUN: Final[list[Callable[[], object]]] = []


def end_at_once() -> None:
    """Have Ctrl-C, a hangup and a request to end do so at once; for the start of a program, before its imports."""
    for number, usual in _ENDS.items():
        if signal.getsignal(number) == usual:
            signal.signal(number, _end)


def end_by_exception() -> None:
    """Have Ctrl-C raise KeyboardInterrupt again: a command that runs others' programs ends them on its way out."""
    if signal.getsignal(signal.SIGINT) == _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def begun(take_away: Callable[[], object]) -> Iterator[None]:
    """Have `take_away` called if the program ends inside the block; what it begins is left to the block otherwise."""
    _BEGUN.append(take_away)
    try:
        yield
    finally:
        _BEGUN.remove(take_away)


@contextmanager
def temporary_folder(parent: Path | None = None, prefix: str = "bubblefinder-") -> Iterator[Path]:
    """Give a folder that is gone afterwards, however the program ends but by being killed."""
    with (
        tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as place,
        begun(partial(shutil.rmtree, place, ignore_errors=True)),
    ):
        yield Path(place)


@contextmanager
def deaf() -> Iterator[None]:
    """Begin threads, and by them processes, that never hear Ctrl-C, from their first instruction on.

    A terminal sends it to workers too, which end without a word when this program does. What Python tidies up behind
    its processes with is begun before: the thread that begins it would hear Ctrl-C again.
    """
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(number: int, _: FrameType | None) -> None:
    """Take away what was begun, the last first, and die of the signal, so that a shell's loop ends as well."""
    signal.signal(number, signal.SIG_DFL)
    for take_away in reversed(_BEGUN):
        with suppress(OSError):
            take_away()
    os.kill(os.getpid(), number)
