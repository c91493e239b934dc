from __future__ import annotations

import re

import pytest

from bubblefinder.capture.kernels import FUNCTIONS, dependent_module, plain_module


@pytest.mark.parametrize("ptx", [plain_module(), dependent_module()], ids=["plain", "dependent"])
def test_modules_are_whole(ptx: str) -> None:
    assert ptx.count("{") == ptx.count("}") == ptx.count(".entry")
    assert ptx.startswith(".version")
    for body in ptx.split(".visible")[1:]:
        labels = re.findall(r"^(\w+):$", body, re.MULTILINE)
        assert set(re.findall(r"bra (\w+);", body)) == set(labels)
        assert "ret;" in body


def test_the_entry_points_the_workload_loads() -> None:
    entries = re.findall(r"\.entry (\w+)\(", plain_module())
    assert entries == [*(f"busy{i}" for i in range(FUNCTIONS)), "stamped", "wide", "tick"]
    assert re.findall(r"\.entry (\w+)\(", dependent_module()) == ["dependent"]


def test_only_the_dependent_kernel_needs_hopper() -> None:
    assert ".target sm_60" in plain_module()
    assert "griddepcontrol" not in plain_module()
    assert ".target sm_90" in dependent_module()
