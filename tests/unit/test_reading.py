from __future__ import annotations

import io
from typing import TYPE_CHECKING

from bubblefinder.reading import STDIN, read_bytes

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_dash_is_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"given")))
    (tmp_path / "-").write_bytes(b"a file")
    assert read_bytes(STDIN) == b"given"
    assert read_bytes(tmp_path / "-") == b"a file"
