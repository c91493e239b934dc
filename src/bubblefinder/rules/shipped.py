"""Where what ships with the product is: rule packs, and tables of hardware and models."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

OTHER: Final = "other"
"""The category of kernels that no pattern fits."""


def shipped() -> Path:
    """Return the folder of the shipped packs: inside the wheel, or at the top of a checkout."""
    installed = Path(str(resources.files("bubblefinder"))) / "_packs"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "rules"
