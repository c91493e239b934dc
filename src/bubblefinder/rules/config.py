"""A project's own settings: ``bubblefinder.toml``, or ``[tool.bubblefinder]`` in ``pyproject.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, model_validator

from bubblefinder.errors import UsageError
from bubblefinder.rules.match import About, Conditions, TextTest, holds
from bubblefinder.rules.subjects import kind_of
from bubblefinder.rules.suggest import Strict, read_toml, validate

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from bubblefinder.rules.model import Match

CONFIG_NAME: Final = "bubblefinder.toml"
PROJECT_NAME: Final = "pyproject.toml"


class Expected(Strict):
    """A wait that is known and accepted: it is shown with its reason and owner, and fails no gate."""

    reason: str = Field(min_length=1, description="why it is accepted")
    owner: str = Field(min_length=1, description="who to ask")
    rule: TextTest | None = Field(default=None, description="ids or names of rules it covers; every rule if left out")
    wait: Annotated[Conditions, About("wait")] | None = Field(
        default=None, description="conditions on the wait, all of which must hold"
    )

    @model_validator(mode="after")
    def _covers_something(self) -> Self:
        if self.rule is None and (self.wait is None or not self.wait.model_fields_set):
            raise ValueError("it would cover everything; give a rule, or conditions under [expected.wait]")
        return self

    def covers(self, match: Match) -> bool:
        """Return whether the match is the expected one."""
        named = self.rule is None or self.rule.passes(match.rule) or self.rule.passes(match.name)
        placed = self.wait is None or (kind_of(match.subject) == "wait" and holds(self.wait, match.subject))
        return named and placed


class Config(Strict):
    """Which rules run, and which waits are expected.

    `select` and `ignore` take ids, the letters that ids start with, names, and names of packs.
    """

    select: tuple[str, ...] = Field(default=(), description="only these rules; all of them if empty")
    ignore: tuple[str, ...] = Field(default=(), description="not these rules")
    rules: tuple[Path, ...] = Field(default=(), description="folders with a team's own packs, relative to this file")
    batch: int = Field(default=1, ge=1, description="requests decoded together; sizes the index arrays of a plan()")
    expected: tuple[Expected, ...] = ()

    def override(self, *, select: Iterable[str] = (), ignore: Iterable[str] = (), rules: Iterable[Path] = ()) -> Config:
        """Return the settings with those of a command line: `select` replaces, the others add."""
        return self.model_copy(
            update={
                "select": tuple(select) or self.select,
                "ignore": (*self.ignore, *ignore),
                "rules": (*self.rules, *rules),
            }
        )


def find_config(start: Path) -> Path | None:
    """Return the settings file that holds for a folder: the nearest upwards, bubblefinder.toml first."""
    for folder in (start, *start.parents):
        if (own := folder / CONFIG_NAME).is_file():
            return own
        if (project := folder / PROJECT_NAME).is_file() and "bubblefinder" in read_toml(project).get("tool", {}):
            return project
    return None


def load_config(path: Path | None) -> Config:
    """Return the settings in a file; the defaults without one.

    Raises:
        FileError: with every mistake in it.
        UsageError: it isn't there.
    """
    if path is None:
        return Config()
    if not path.is_file():
        raise UsageError(f"{path}: no such file", hint="name a bubblefinder.toml or a pyproject.toml")
    tables = read_toml(path)
    if path.name == PROJECT_NAME:
        tables = tables.get("tool", {}).get("bubblefinder", {})
    config = validate(Config, tables, str(path))
    return config.model_copy(update={"rules": tuple(path.parent / folder for folder in config.rules)})
