"""One colour and one pattern for each ledger class, shared by every chart."""

from __future__ import annotations

from typing import Final

COLOURS: Final = {
    "busy": ("#4f6f94", "#84a4cb"),
    "intra_graph": ("#b67a00", "#efb63c"),
    "host_late": ("#c4312b", "#ff7168"),
    "launching": ("#dd6516", "#ff9d57"),
    "queued": ("#7a4fb5", "#b792f2"),
    "unattributed": ("#6b7480", "#9aa3af"),
    "unrecorded": ("#878f9c", "#737c89"),
    "profiler": ("#12796f", "#45c4b5"),
}
"""Light and dark; each is at least three to one against its background."""

ROLE_COLOURS: Final = (
    ("#1f5fbf", "#6aa8ff"),
    ("#a13d8b", "#ea86d4"),
    ("#3f7d20", "#8fce6b"),
    ("#8a5a16", "#d9a860"),
    ("#28757f", "#5cc3cf"),
)
"""Roles in charts that show no ledger class; markers differ in shape too."""

CHART: Final = {
    "ink": ("#1b2430", "#e6ebf1"),
    "muted": ("#586474", "#9eabba"),
    "grid": ("#e4e8ed", "#2a333e"),
    "paper": ("#ffffff", "#151b22"),
    "host": ("#9aa6b4", "#5d6a79"),
    "nvtx": ("#c3ccd7", "#3d4854"),
    "operation": ("#8aa3bf", "#5f7b9c"),
    "launch": ("#5b6b7d", "#a9b6c4"),
    "wait": ("#3d8f86", "#4fb3a8"),
    "blamed": ("#8f1d5b", "#f06ab4"),
}

PAGE: Final = {
    "ground": ("#fbfcfd", "#0f1419"),
    "accent": ("#1d5bb8", "#7db2ff"),
    "high": ("#a01f2e", "#ff8a86"),
    "medium": ("#8a4b00", "#f3b562"),
    "info": ("#44546a", "#a9b8ca"),
}
"""What stands around charts: the ground, links, and how grave something is."""

PATTERNS: Final = {
    "launching": "/",
    "queued": "\\",
    "intra_graph": ".",
    "unattributed": "+",
    "unrecorded": "x",
    "profiler": "-",
}
KIND_COLOURS: Final = {
    "nvtx": "nvtx",
    "api": "host",
    "launch": "launch",
    "wait": "wait",
    "blamed_wait": "blamed",
    "replay": "busy",
    "operation": "operation",
    "operations": "operation",
}
"""The palette's name of the colour of each kind of bar; a class of idle time has its own."""


def css_variables(theme: int) -> str:
    """Return the palette as CSS custom properties; theme 0 is light, 1 is dark."""
    roles = {f"role{number}": pair for number, pair in enumerate(ROLE_COLOURS)}
    return "".join(f"--c-{name}:{pair[theme]};" for name, pair in (COLOURS | CHART | PAGE | roles).items())


def token(name: str) -> str:
    """Return the placeholder that the page replaces by the theme's colour."""
    return f"@{name}"
