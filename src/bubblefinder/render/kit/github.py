"""GitHub workflow commands: annotations on a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from bubblefinder.report.sentences import plain

if TYPE_CHECKING:
    from bubblefinder.render.kit.sheet import Level, Sheet

MOST: Final = 9
"""GitHub shows about ten annotations of a level for a step; one is the verdict."""
_LEVELS: Final[dict[Level | None, Command]] = {"fail": "error", "unknown": "warning", "ok": "notice", None: "notice"}
Command = Literal["error", "warning", "notice"]


def write(sheet: Sheet) -> str:
    """Return the verdict and what failed, one workflow command a line; print them to the log of a step."""
    told = " ".join(part for part in (sheet.headline, sheet.basis) if part)
    lines = [command(_LEVELS[sheet.level], f"bubblefinder {sheet.document}", plain(told, 1000))]
    failed = [case for case in sheet.cases if case.level != "ok"]
    lines += [command(_LEVELS[case.level], plain(case.name, 160), plain(case.message, 400)) for case in failed[:MOST]]
    return "\n".join(lines) + "\n"


def command(level: Command, title: str, message: str) -> str:
    """Return one annotation, whatever title and message hold."""
    return f"::{level} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
