"""Which kernels are collectives, by their names."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_NAMES: Final = re.compile(
    r"nccl(Dev)?Kernel|ncclSym|cross_device_reduce|all_?reduce|one_?shot|two_?shot|all_?gather|reduce_?scatter"
    r"|multimem|nvshmem|mscclpp",
    re.IGNORECASE,
)


@lru_cache(maxsize=1 << 14)
def is_collective(name: str) -> bool:
    """Tell by its name whether a kernel is a collective: its time holds waiting for other ranks."""
    return _NAMES.search(name) is not None
