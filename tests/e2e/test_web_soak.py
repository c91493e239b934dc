"""A soak: a short one, and of 500 uploads in the nightly run; `python -m tests.soak` does longer and harder ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.soak import Disk, soak

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_every_accepted_upload_is_done_or_says_why_whatever_is_killed_or_full(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    long = pytestconfig.getoption("hypothesis_profile") == "nightly"
    uploads, fills = (500, 2) if long else (30, 1)
    disk = Disk(tmp_path, is_real=False)
    done = soak(disk, uploads=uploads, kills=uploads // 15, worker_kills=uploads // 6, fills=fills)
    assert done.answers["507"] > 3
    assert done.states["done"] > uploads // 6
    assert sum(done.states.values()) == len(done.accepted) > uploads // 3
