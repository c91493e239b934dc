"""The thresholds by which causes are told apart: one table, with what each decides and where it shows.

A loop named after a threshold is one in which another value gives a wrong answer; the tests simulate it.
"""

from __future__ import annotations

from typing import Final

STALL_NS: Final = 20_000
"""A call that lasts so long stalls its thread; shorter ones are the price of calling CUDA. Decides which calls beside
synchronisations can be a cause. Shows where memory is mapped in four calls of 60 to 1,200 us a step."""

RETURN_NS: Final = 50_000
"""A call that comes back so soon after the GPU ran dry was waiting for it; one that goes on was busy with itself.
Shows between a cudaFree that synchronises (3 us) and a cudaHostAlloc that takes 12 ms whatever the GPU does."""

OWN_COPY_NS: Final = 10_000
"""A copy call that begins on an idle GPU waits for nothing but its own copy; below this it is the price of the call.
Shows at a synchronous cudaMemcpy of 4 KiB inside a loop whose host is slow."""

USUALLY: Final = 0.5
"""What holds for more than half of the cases is usual: that an API waits, that a thread follows another's wait."""

SYNCHRONOUS_SHARE: Final = 0.9
"""Launches are synchronous if so many of the longer kernels are over when their launch calls return. On an idle GPU
some kernels are over sooner than their calls; with CUDA_LAUNCH_BLOCKING=1 all of them are."""

LONGER_KERNEL_NS: Final = 10_000
"""Only kernels at least so long are asked for that: a launch call takes some microseconds itself."""

FEWEST: Final = 4
"""A median or an order seen in fewer cases says nothing about what is usual."""

SLOW_LAUNCH: Final = 10
"""A launch call so many times longer than usual for what it launches did something else as well, such as loading a
module; see `SLOW_LAUNCH_NS`."""

SLOW_LAUNCH_NS: Final = 200_000
"""... and is at least so long. Shows at the first launch of a kernel whose module is loaded lazily."""

HANDOVER_NS: Final = 100_000
"""A thread that calls CUDA again so soon after another's wait has ended was waiting for that thread. A later one may
have been: then the same order in every step tells."""

STEADY: Final = 0.2
"""A thread follows another if the time from the other's return to its next call varies less than this (median
deviation over median, beside `STEADY_NS`). A poll that ends at random times in a silence varies by half."""

STEADY_NS: Final = 20_000
"""So much a hand-over may vary in any case: waking a thread takes some microseconds, more on a busy machine."""

HOLE_FACTOR: Final = 3
"""A stretch without calls is a pause if it is so many times longer than usual at its place, and `HOLE_NS` more."""

HOLE_NS: Final = 100_000
"""See `HOLE_FACTOR`: the work between two short calls easily triples."""

PAUSE_NS: Final = 20_000
"""A call into the operating system, a lock or a collection of at least this length is a pause of its own, however
regular. Shows at a poll() of 3 ms in every step."""

COVERS: Final = 0.5
"""A pause has the reason that covers more than this part of it."""

NOTABLE_SHARE: Final = 0.001
"""A driver call that is busy with itself is named if it holds this share of the idle that the host leaves: any call is
slow once. Shows at cudaStreamIsCapturing, which takes 22 us once in a capture that idles for 600 ms."""

QUEUE_NS: Final = 20_000
"""Queued work starts within some microseconds of the work before it; if the GPU idles for longer, something held it
back. Shows at a host function that keeps a stream for 400 us."""
FULL_QUEUE: Final = 1_000
"""The driver takes about 1,024 launches ahead of the GPU; with so many pending, the next call waits for room."""
