"""API names: suffixes and roles."""

from __future__ import annotations

import pytest

from bubblefinder.timeline.apis import CallRole, api_name, call_role


@pytest.mark.parametrize(
    ("recorded", "api"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync"),
        ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"),
        ("cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync_v2"),
        ("cuLaunchKernel", "cuLaunchKernel"),
        ("cuGraphLaunch_ptsz", "cuGraphLaunch"),
    ],
)
def test_only_version_and_stream_suffixes_go(recorded: str, api: str) -> None:
    assert api_name(recorded) == api


@pytest.mark.parametrize(
    ("api", "role"),
    [
        ("cudaGraphLaunch", CallRole.LAUNCH_GRAPH),
        ("cuGraphLaunch", CallRole.LAUNCH_GRAPH),
        ("cudaLaunchKernel", CallRole.LAUNCH_KERNEL),
        ("cudaLaunchKernelExC", CallRole.LAUNCH_KERNEL),
        ("cuLaunchKernelEx", CallRole.LAUNCH_KERNEL),
        ("cudaLaunchCooperativeKernel", CallRole.LAUNCH_KERNEL),
        ("cudaMemcpy", CallRole.COPY),
        ("cudaMemcpyAsync", CallRole.COPY),
        ("cuMemcpyDtoHAsync_v2", CallRole.COPY),
        ("cudaMemsetAsync", CallRole.MEMSET),
        ("cudaStreamSynchronize", CallRole.WAIT),
        ("cuCtxSynchronize", CallRole.WAIT),
        ("cudaDeviceSynchronize", CallRole.WAIT),
        ("cudaStreamWaitEvent", CallRole.STREAM_WAIT),
        ("cudaEventQuery", CallRole.QUERY),
        ("cudaStreamBeginCapture", CallRole.CAPTURE_BEGIN),
        ("cuStreamBeginCapture_v2", CallRole.CAPTURE_BEGIN),
        ("cudaLaunchHostFunc", CallRole.OTHER),
        ("cudaMalloc", CallRole.OTHER),
    ],
)
def test_what_a_call_does(api: str, role: CallRole) -> None:
    assert call_role(api) is role
