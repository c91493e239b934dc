"""Budget files: what people write to say how long a step may take and how idle it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Self

from pydantic import BaseModel, Field, ValidationInfo, field_validator, model_validator

from bubblefinder.compare.limit_syntax import parse_share
from bubblefinder.compare.limited import STRICT, Limited
from bubblefinder.compare.metrics import METRICS, SERVING
from bubblefinder.compare.scenario import Scenario
from bubblefinder.rules.suggest import did_you_mean, load

if TYPE_CHECKING:
    from pathlib import Path

_HINT: Final = "docs/budgets.md shows the format, `bubblefinder metrics` the metrics, and `budget init` writes one"


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
        FileError: the file can't be read, or is wrong; the message has every mistake, with its line.
    """
    return load(BudgetFile, path, hint=_HINT)
