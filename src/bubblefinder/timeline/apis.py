"""What each CUDA API call does, told by its name alone (syncType numbers change between versions)."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class CallRole(IntEnum):
    """The part an API call plays for the GPU."""

    OTHER = 0
    LAUNCH_KERNEL = 1
    LAUNCH_GRAPH = 2
    COPY = 3
    MEMSET = 4
    WAIT = 5
    CAPTURE_BEGIN = 6
    CAPTURE_END = 7
    QUERY = 8
    EVENT_RECORD = 9
    STREAM_WAIT = 10


_VERSION = re.compile(r"_v\d{4,5}$")
_STREAM_SUFFIX = re.compile(r"_pt(sz|ds)$")

_PATTERNS = (
    (CallRole.LAUNCH_GRAPH, r"(cuda|cu)GraphLaunch"),
    (
        CallRole.LAUNCH_KERNEL,
        r"(cuda|cu)Launch(Cooperative)?Kernel(MultiDevice|Ex|ExC)?|cudaLaunch|cuLaunch(Grid|GridAsync)?",
    ),
    (CallRole.COPY, r"(cuda|cu)Memcpy(?!.*Attribute).*"),
    (CallRole.MEMSET, r"(cuda|cu)Memset.*"),
    (
        CallRole.WAIT,
        r"(cuda)(Stream|Event|Device|Thread)Synchronize|cu(Stream|Event|Ctx)Synchronize|cudaCtxSynchronize",
    ),
    (CallRole.CAPTURE_BEGIN, r"(cuda|cu)StreamBeginCapture(ToGraph)?"),
    (CallRole.CAPTURE_END, r"(cuda|cu)StreamEndCapture"),
    (CallRole.QUERY, r"(cuda|cu)(Event|Stream)Query"),
    (CallRole.EVENT_RECORD, r"(cuda|cu)EventRecord(WithFlags)?"),
    (CallRole.STREAM_WAIT, r"(cuda|cu)StreamWaitEvent"),
)
_ROLES = tuple((role, re.compile(rf"(?:{pattern})(?:_v\d)?")) for role, pattern in _PATTERNS)


def api_name(recorded: str) -> str:
    """Return the API's name without the version and per-thread-stream suffixes.

    ``cudaMemcpyAsync_ptsz_v7000`` becomes ``cudaMemcpyAsync``; ``cuMemcpyDtoHAsync_v2`` stays.
    """
    return _STREAM_SUFFIX.sub("", _VERSION.sub("", recorded))


def call_role(api: str) -> CallRole:
    """Return the role of an API call by its name without suffixes."""
    return next((role for role, pattern in _ROLES if pattern.fullmatch(api)), CallRole.OTHER)


def call_roles(names: Mapping[int, str]) -> dict[int, tuple[str, CallRole]]:
    """Return (api, role) for every string id in `names` that could be an API call."""
    apis = {name_id: api_name(text) for name_id, text in names.items()}
    return {name_id: (api, call_role(api)) for name_id, api in apis.items()}
