"""Budget files: what people write to say how long a step may take and how idle it may be."""

from __future__ import annotations

import tomllib
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator, model_validator

from bubblefinder.compare.limit_syntax import parse_share
from bubblefinder.compare.limited import STRICT, Limited
from bubblefinder.compare.metrics import METRICS
from bubblefinder.compare.scenario import SERVING, Scenario, ServingBudget
from bubblefinder.errors import UsageError
from bubblefinder.rules.suggest import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

VERSION: Final = 1
_KINDS: Final = frozenset({"float", "str", "int"})


class Budget(Limited):
    """One limit on one metric."""

    catalogue = METRICS

    metric: str = Field(description="An id that `bubblefinder metrics` lists.")
    where: dict[str, int | str] = Field(
        default_factory=dict, description="Only this rank, role or severity; all of them without it."
    )
    regress: float | str | None = Field(
        None, description='By how much of the baseline it may be worse, as 0.02 or "2 %"; never less than the noise.'
    )

    @field_validator("metric")
    @classmethod
    def _known(cls, metric: str) -> str:
        if metric in SERVING:
            raise ValueError(f"{metric} is what a benchmark measures; it belongs into a [[scenario]]")
        if metric not in METRICS:
            raise ValueError(f"there is no metric {metric!r}{did_you_mean(metric, METRICS)}")
        return metric

    @field_validator("where")
    @classmethod
    def _of_the_metric(cls, where: dict[str, int | str], info: ValidationInfo) -> dict[str, int | str]:
        metric = METRICS.get(info.data.get("metric", ""))
        for dimension in where if metric else ():
            if metric and dimension not in metric.dimensions:
                known = ", ".join(metric.dimensions) or "none"
                raise ValueError(f"{metric.id} has no dimension {dimension!r} (it has: {known})")
        return where

    @field_validator("regress")
    @classmethod
    def _a_share(cls, regress: float | str | None, info: ValidationInfo) -> float | str | None:
        metric = METRICS.get(info.data.get("metric", ""))
        if regress is not None and parse_share(regress) < 0:
            raise ValueError("it is below 0")
        if regress is not None and metric and metric.better == "neither":
            raise ValueError(f"{metric.id} is neither better high nor low, so it can't regress; give max or min")
        return regress

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.max is None and self.min is None and self.regress is None:
            raise ValueError("it has no limit; give max, min or regress")
        return self

    @property
    def tolerance(self) -> float | None:
        """By how much of the baseline the value may be worse, as a ratio."""
        return None if self.regress is None else parse_share(self.regress)


class BudgetFile(BaseModel):
    """A budget file. Versions other than 1 are refused."""

    model_config = STRICT

    version: Literal[1] = Field(description="The version of this format.")
    budget: list[Budget] = Field(default_factory=list, description="The limits on captures, judged one by one.")
    scenario: list[Scenario] = Field(default_factory=list, description="What serving must keep, by kind of traffic.")

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not self.budget and not self.scenario:
            raise ValueError("it has no limit; write a [[budget]] or a [[scenario]]")
        return self


def load_budget(path: Path) -> BudgetFile:
    """Return the budgets in a TOML file.

    Raises:
        UsageError: the file can't be read, or is wrong; the message tells everything that is, with lines.
    """
    try:
        text = path.read_text("utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise UsageError(
            f"{path} can't be read: {error.strerror}",
            hint="check the path; `bubblefinder budget init` writes one",
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text in UTF-8", hint="docs/budgets.md shows the format") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is no TOML: {error}", hint="docs/budgets.md shows the format") from error
    try:
        return BudgetFile.model_validate(document)
    except ValidationError as error:
        lines = text.splitlines()
        problems = {_place(one, lines): _told(one) for one in error.errors(include_url=False)}
        told = [f"  {place}: {problem}" for place, problem in problems.items()]
        raise UsageError(
            "\n".join([f"{path} is wrong in {len(told)} {'place' if len(told) == 1 else 'places'}", *told]),
            hint="docs/budgets.md shows the format, `bubblefinder metrics` the metrics",
        ) from error


_MODELS: Final[dict[tuple[str, ...], type[BaseModel]]] = {
    ("budget",): Budget, ("scenario",): Scenario, ("scenario", "budget"): ServingBudget,
}  # fmt: skip


def _told(problem: Any) -> str:  # noqa: ANN401 - pydantic's own shape
    location, kind = problem["loc"], problem["type"]
    if kind == "extra_forbidden":
        model = _MODELS.get(tuple(part for part in location[:-1] if isinstance(part, str)), BudgetFile)
        return f"there is no key {str(location[-1])!r}{did_you_mean(str(location[-1]), model.model_fields)}"
    if kind == "missing":
        return f"it is missing{f'; write version = {VERSION}' if location == ('version',) else ''}"
    if location and location[-1] in _KINDS:
        return "it is neither a number nor text in quotes"
    if location == ("version",):
        return f"this bubblefinder reads version {VERSION}"
    message: str = problem["msg"].removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _place(problem: Any, lines: list[str]) -> str:  # noqa: ANN401 - pydantic's own shape
    """Return the line a problem is on, as well as a scan can tell, and its path."""
    location = problem["loc"]
    path = ".".join(str(part) for part in location if part not in _KINDS)
    if not location:
        return "the file"
    first = _table(location, lines)
    if first is None or (problem["type"] == "missing" and len(location) == 1):
        return path
    key = next((part for part in reversed(location) if isinstance(part, str) and part not in _KINDS), "")
    found = (number for number in range(first, len(lines)) if lines[number].split("=")[0].strip() == key)
    return f"line {next(found, first) + 1}, {path}"


def _table(location: tuple[int | str, ...], lines: list[str]) -> int | None:
    """Return the line on which the innermost table of a path begins; null where it isn't written as one."""
    first, name = 0, ""
    for part, number in pairwise(location):
        if isinstance(part, str) and isinstance(number, int):
            name = f"{name}.{part}" if name else part
            heads = [n for n in range(first, len(lines)) if lines[n].replace(" ", "").startswith(f"[[{name}]]")]
            if number >= len(heads):
                return None
            first = heads[number]
    return first
