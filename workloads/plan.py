"""FlashInfer's `plan()` behind the GPU's work, once a step, with its lengths on the GPU or on the host.

usage: python -m workloads.plan {device,host} [--steps 40] [--result FILE]

`plan()` brings the page offsets and the lengths of the last pages to the host to plan with. Those that are on the GPU
it copies back and waits for, and with them for all that was launched before; those on the host it has already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import flashinfer
import torch

from workloads.decode import Loop, arguments, mark, measure, tell

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE, PAGES, HEADS, KV_HEADS, HEAD = 16, 512, 32, 8, 128
WORKSPACE = 128 << 20


def planned(where: str) -> Callable[[Loop, int], None]:
    """Return a step's work around verify: plan for one request whose lengths are where it is said."""
    workspace = torch.empty(WORKSPACE, dtype=torch.uint8, device="cuda")
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD")
    indptr = torch.tensor([0, PAGES], dtype=torch.int32)
    last = torch.full((1,), PAGE, dtype=torch.int32)
    indices = torch.arange(PAGES, dtype=torch.int32, device="cuda")
    if where == "device":
        indptr, last = indptr.cuda(), last.cuda()

    def act(loop: Loop, _: int) -> None:
        loop.run("verify")
        with mark("plan"):
            wrapper.plan(indptr, indices, last, HEADS, KV_HEADS, HEAD, PAGE)
        loop.wait_for_previous()

    return act


def main() -> None:
    """Plan with the lengths where the command line says."""
    asked = arguments(("device", "host"), __doc__)
    act = planned(asked.variant)
    tell(asked, measure(Loop(graphs=True, ranks=1), act, asked.steps, act))


if __name__ == "__main__":
    main()
