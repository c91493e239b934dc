"""Budget files: what people write to say how long a step may take, how idle it may be, and what serving must keep."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from bubblefinder.compare.limit_syntax import check_any, parse_limit, parse_share
from bubblefinder.compare.metrics import METRICS, SERVING, Metric
from bubblefinder.rules.suggest import did_you_mean, load

if TYPE_CHECKING:
    from pathlib import Path

_HINT: Final = "docs/budgets.md shows the format, `bubblefinder metrics` the metrics, and `budget init` writes one"
STRICT: Final = ConfigDict(extra="forbid", strict=True, frozen=True)
"""People write these files: an unknown key is a slip, and a value isn't turned into another type."""

Limit = Annotated[
    float | str,
    Field(description='In the metric\'s unit: a time as "7.4 ms", a share as 0.12 or "12 %", a count as 3.'),
]


class Limited(BaseModel):
    """A limit on a metric of a catalogue. `metric` comes first, since the limits are checked in its unit."""

    model_config = STRICT
    catalogue: ClassVar[Mapping[str, Metric]]

    metric: str
    max: Limit | None = Field(None, description="The value may not be above this.")
    min: Limit | None = Field(None, description="The value may not be below this.")
    severity: Literal["error", "warn"] = Field("error", description="`warn` shows a breach and fails nothing.")
    why: str | None = Field(None, description="Why the limit is what it is, or why it is waived.")
    owner: str | None = Field(None, description="Who decides about it.")
    until: date | None = Field(None, description="Waived up to and including this day: a breach only warns.")

    @field_validator("max", "min")
    @classmethod
    def _in_the_unit(cls, limit: float | str | None, info: ValidationInfo) -> float | str | None:
        metric = cls.catalogue.get(info.data.get("metric", ""))
        if metric and limit is not None:
            parse_limit(limit, metric.unit)
        elif limit is not None:
            check_any(limit)
        return limit

    @model_validator(mode="after")
    def _sound(self) -> Self:
        lowest, highest = self.limit("min"), self.limit("max")
        if lowest is not None and highest is not None and lowest > highest:
            raise ValueError("min is above max")
        if self.until is not None and not (self.why and self.owner):
            raise ValueError("a waiver (until) needs why and owner")
        return self

    def limit(self, name: Literal["max", "min"]) -> float | None:
        """Return a limit in the metric's unit; null if it isn't set."""
        text = getattr(self, name)
        return None if text is None else parse_limit(text, self.catalogue[self.metric].unit)


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


class ServingBudget(Limited):
    """One limit on a serving metric, in every concurrency of its scenario."""

    catalogue = SERVING

    metric: str = Field(description="A `serving.` id that `bubblefinder metrics` lists.")

    @field_validator("metric")
    @classmethod
    def _known(cls, metric: str) -> str:
        if metric not in SERVING:
            raise ValueError(f"there is no serving metric {metric!r}{did_you_mean(metric, SERVING)}")
        return metric

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.max is None and self.min is None:
            raise ValueError("it has no limit; give max or min")
        return self


class Scenario(BaseModel):
    """One kind of traffic and what it must keep."""

    model_config = STRICT

    name: str = Field(min_length=1, description="As in the benchmark's tag or label: coding, zh_chat, tool_calling ...")
    concurrency: list[int] = Field(min_length=1, description="Requests at a time; each is judged by itself.")
    cache: Literal["warm", "cold"] | None = Field(
        None, description="Only warm or only cold runs; both, apart, without."
    )
    budget: list[ServingBudget] = Field(min_length=1, description="The limits.")


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
