"""What no benchmark writes: whether tasks succeeded, greedy answers stayed the same, and a way back is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from bubblefinder.rules.suggest import Strict, load_json

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Final = "bubblefinder.acceptance/1"


class Result(Strict):
    """What was seen in one scenario; what is left out is missing, never passed."""

    scenario: str = Field(description="as in the budget file")
    concurrency: int = Field(gt=0)
    cache: Literal["warm", "cold"] | None = None
    task_success: float | None = Field(default=None, ge=0, le=1, description="share of tasks solved")
    invalid_tool_calls: float | None = Field(
        default=None, ge=0, le=1, description="share of tool calls that don't parse"
    )
    fallback_ratio: float | None = Field(default=None, ge=0, le=1, description="share of steps without speculation")
    accept_length: float | None = Field(default=None, ge=0, description="tokens a verify pass commits")
    accept_counts_own: bool = Field(default=True, description="whether it counts the verifier's own token")
    greedy_match: bool | None = Field(default=None, description="whether 256 greedy tokens are the same bytes")
    rollback_ready: bool | None = Field(default=None, description="whether the way back was tried")


class Acceptance(Strict, populate_by_name=True):
    """A file of results."""

    schema_: Literal["bubblefinder.acceptance/1"] = Field(alias="schema")
    result: tuple[Result, ...]


def read_acceptance(path: Path) -> Acceptance:
    """Return the results in a JSON file.

    Raises:
        FileError: the file can't be read, or is wrong; the message has every mistake.
    """
    return load_json(Acceptance, path, hint=f'begin with {{"schema": "{SCHEMA}", "result": [')
