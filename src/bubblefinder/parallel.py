"""Doing independent work at once: polars and numpy let other threads run while they compute."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

_Given = ParamSpec("_Given")
_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


def each(work: Callable[[_Item], _Found], items: Sequence[_Item]) -> list[_Found]:
    """Return what work gives for each item, in their order, on as many threads as there are processors."""
    threads = min(os.cpu_count() or 1, len(items))
    if threads <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))


def aside(work: Callable[_Given, _Found], *given: _Given.args, **named: _Given.kwargs) -> Future[_Found]:
    """Begin some work on a thread of its own; what it gives, or raises, is the result of what is returned."""
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(work, *given, **named)
    finally:
        pool.shutdown(wait=False)
