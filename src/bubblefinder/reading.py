"""Reads a file that a user names, or standard input for ``-``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

STDIN: Final = Path("-")
"""What a user gives for standard input."""


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, or all of standard input.

    Raises:
        OSError: it can't be read.
    """
    return sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
