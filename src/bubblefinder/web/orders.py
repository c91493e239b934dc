"""What the server has a job do, and what the job leaves; no more is needed to ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STAGES: Final = ("unpack", "load", "timeline", "steps", "causes", "report")
"""What the page shows; finer stages that the analysis names count as part of the one before."""
OUTPUTS: Final = {"json": "report.json", "html": "report.html", "markdown": "report.md"}
PERFETTO: Final = "report.perfetto.json.gz"
BODY: Final = "body.html"
EVENTS: Final = "events"
FINISHED: Final = "finished"
DIFF_OUTPUTS: Final = {"json": "diff.json", "html": "diff.html", "markdown": "diff.md"}
WAITING: Final = "waiting"
"""Beside the metrics of a run: the share of a step in which the GPU waited for the host, on which noise depends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A trace to report on; paths are the server's own."""

    upload: str
    scratch: str
    name: str
    label: str | None
    commit: str | None
    unpacked_bytes: int
    archive_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Reports to compare, by path, and the folder to write to."""

    base: list[str]
    head: list[str]
    out: str
