"""A short soak; `python -m tests.soak` does the long one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.soak import Disk, soak

if TYPE_CHECKING:
    from pathlib import Path


def test_every_accepted_upload_is_done_or_says_why_whatever_is_killed_or_full(tmp_path: Path) -> None:
    done = soak(Disk(tmp_path, is_real=False), uploads=30, kills=2, worker_kills=5, fills=1)
    assert done.answers["507"] > 3
    assert done.states["done"] > 5
    assert sum(done.states.values()) == len(done.accepted) > 10
