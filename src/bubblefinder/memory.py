"""How the allocators keep freed memory: enough to use it again, not so much that a large capture needs far more."""

from __future__ import annotations

import ctypes
import os
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_MAPPED: Final = 32 << 20
_KEPT: Final = 128 << 20


def give_back_early() -> None:
    """Keep a little freed memory and return the rest soon; call before polars is imported.

    polars' jemalloc reads its settings from the environment when it loads. glibc moves both of its thresholds with
    the sizes that are freed: left alone it either maps every column anew, which takes longer than filling it, or
    returns nothing. Naming them holds them fixed. With one arena, what the loading thread frees serves the others.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:1000,muzzy_decay_ms:0")
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
