"""Doing independent work at once, where nothing can wait for ever: what numpy and the system do.

A thread that waits for the interpreter while it holds something else stops another one that has the interpreter and
waits for that. polars' workers, SQLite's authorizer and modules being imported are all such, so none of them is used
on a thread of ours; polars uses every processor by itself.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


def each(work: Callable[[_Item], _Found], items: Sequence[_Item]) -> list[_Found]:
    """Return what work gives for each item, in their order, on as many threads as there are processors.

    Args:
        work: numpy, reading of files and plain Python; no polars, no SQLite, nothing that imports.
        items: what each call is given.
    """
    threads = min(os.cpu_count() or 1, len(items))
    if threads <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))
