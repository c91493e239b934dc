"""How freed memory is kept: enough to use it again, not so much that a large capture needs far more."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_MAPPED: Final = 32 << 20
_KEPT: Final = 128 << 20
_POLARS: Final = "narenas:1,oversize_threshold:0,dirty_decay_ms:5000,muzzy_decay_ms:0"
_OBJECTS: Final = 50_000


def give_back_early() -> None:
    """Keep a little freed memory and return the rest soon; call before polars is imported.

    polars' jemalloc reads its settings from the environment when it loads; left alone it returns every column of
    more than 8 MB at once, and clears another one for the next. glibc moves both of its thresholds with
    the sizes that are freed: left alone it either maps every column anew, which takes longer than filling it, or
    returns nothing. Naming them holds them fixed. With one arena each, what one thread frees serves the others.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", _POLARS)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAPPED)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
        mallopt(_M_ARENA_MAX, 1)


def give_back() -> None:
    """Return what glibc keeps of freed memory between blocks in use; after a stage that needed much for itself."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def collect_seldom() -> None:
    """Have Python look for cycles of garbage after every 50,000 new objects, and for none as it ends.

    Modules, rules and reports are of objects that stay. Looking through them after every 700, and taking all of them
    apart in the end, took an eighth of the time of an analysis of 200,000 kernels.
    """
    gc.set_threshold(_OBJECTS)
    atexit.register(gc.freeze)
