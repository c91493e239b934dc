"""What every written limit has, whether on a capture or on serving: its bounds, how grave it is, and its waiver."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from bubblefinder.compare.limit_syntax import check_any, parse_limit
from bubblefinder.compare.metrics import Metric

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
