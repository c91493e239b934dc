"""What a slice may hold: the tables, their columns, and what kind of text is in them. Nothing else is copied.

A column is `name` for numbers, `name:KIND` for text and `name>KIND` for the id of a text; `share.scrub` says what
is kept of each kind. Columns are those of the exporters from 2020.4 to 2026.4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_COLUMN: Final = re.compile(r"(\w+)([:>]?)(\w*)")
_PLACE: Final = "start end deviceId contextId greenContextId streamId correlationId globalPid"
_CHAIN: Final = "id symbol>text module>text unresolved originalIP stackDepth"
_GRAPH: Final = "start end eventClass globalTid nameId>text graphNodeId originalGraphNodeId"

ENUMS: Final = "ENUM_"
"""Tables of this prefix hold the names of the exporter's own numbers."""
_ENUM: Final = "id number name:word"

_TABLES: Final = {
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{_PLACE} demangledName>code shortName>code mangledName>code launchType cacheConfig"
    " registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory"
    " localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig"
    " qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId clusterX clusterY clusterZ clusterSchedulingPolicy"
    " maxPotentialClusterSize maxActiveClusters sharedMemoryRequestedPercentage",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_PLACE} bytes copyKind srcId deprecatedSrcId srcKind dstKind srcDeviceId"
    " srcContextId dstDeviceId dstContextId migrationCause graphNodeId copyCount",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_PLACE} value bytes graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_PLACE} graphId graphExecId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId>code returnValue callchainId",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{_PLACE} deprecatedSyncType syncType eventId eventSyncId",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "deviceId contextId greenContextId streamId correlationId globalPid eventId"
    " timestamp eventSyncId",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "start end eventClass globalTid correlationId nameId>text overheadType",
    "PROFILER_OVERHEAD": "start end globalTid nameId>text returnValue overheadType",
    "CUDA_GRAPH_EVENTS": f"{_GRAPH} graphId originalGraphId graphExecId",
    "CUDA_GRAPH_NODE_EVENTS": _GRAPH,
    "CUDA_CALLCHAINS": _CHAIN,
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start globalPid deviceId contextId bytes memKind memoryOperationType name>"
    " correlationId streamId localMemoryPoolType localMemoryPoolReleaseThreshold localMemoryPoolSize"
    " localMemoryPoolUtilizedSize importedMemoryPoolProcessId",
    "OSRT_API": "start end eventClass globalTid nameId>code returnValue nestingLevel callchainId",
    "SCHED_EVENTS": "start cpu isSchedIn globalTid threadState threadBlock",
    "NVTX_EVENTS": "start end eventType rangeId category color text:text globalTid endGlobalTid textId>text domainId"
    " eventId",
    "ThreadNames": "nameId>thread priority globalTid",
    "PROCESSES": "globalPid pid",
    "TARGET_INFO_GPU": "vmId id name:model isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount"
    " uuid:serial chipName:model cuDevice constantMemory maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin"
    " maxShmemPerSm maxRegistersPerSm threadsPerWarp asyncEngines maxWarpsPerSm maxBlocksPerSm"
    " maxThreadsPerBlock computeMajor computeMinor smMajor smMinor",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid uuid:serial numMultiprocessors",
    "TARGET_INFO_CUDA_CONTEXT_INFO": "nullStreamId hwId vmId processId deviceId contextId parentContextId"
    " isGreenContext numMultiprocessors",
    "TARGET_INFO_CUDA_NULL_STREAM": "streamId hwId vmId processId deviceId contextId",
    "TARGET_INFO_CUDA_STREAM": "streamId hwId vmId processId contextId priority flag",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName:word name:fact nameEnum value:version",
    "ANALYSIS_DETAILS": "globalVid duration startTime stopTime",
    "DIAGNOSTIC_EVENT": "timestamp timestampType source severity text:diagnostic globalPid",
    "META_DATA_CAPTURE": "name:fact value:version",
    "META_DATA_EXPORT": "name:fact value:version",
    "EXPORT_META_DATA": "name:fact value:version",
    "BUBBLEFINDER_PART": "captureMode:word originNs leftOutNs",
    "BUBBLEFINDER_RANKS": "gpu process method:word confidence:word mark:text requestsFrom:word",
    "BUBBLEFINDER_STEPS": "gpu process stepIndex start excluded:word regime requests",
    "BUBBLEFINDER_ROLES": "gpu process start role:word position",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shared:
    """A column that may be shared: `kind` of its text, null for numbers; `by_id` where it holds the text's id."""

    name: str
    kind: str | None = None
    by_id: bool = False


def shared_columns(table: str) -> dict[str, Shared]:
    """Return what may be shared of a table by the column's name; nothing of a table that isn't listed."""
    said = _ENUM if table.startswith(ENUMS) else _TABLES.get(table, "")
    return {column.name: column for column in map(_column, said.split())}


def _column(said: str) -> Shared:
    name, mark, kind = next(iter(_COLUMN.findall(said)))
    return Shared(name, kind or None, by_id=mark == ">")
