"""Give freed memory back to the system, so that a large capture needs no more than it holds."""

from __future__ import annotations

import ctypes
import os
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
_LARGE: Final = 1 << 20


def give_back_early() -> None:
    """Make the allocators return large blocks soon; call before polars is imported.

    polars' jemalloc reads its settings from the environment when it loads. glibc raises its threshold for
    mapped blocks with every large block that is freed, and then keeps them: naming one holds it fixed.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:300,muzzy_decay_ms:0")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
