"""Rows of an export that a finding rests on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """A row of the export, by its 0-based position in the table as stored."""

    table: str
    row: int
    start_ns: int
    end_ns: int
