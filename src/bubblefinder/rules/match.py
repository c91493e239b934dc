"""Tests on the fields of a subject, as a person writes them in a rule pack.

An unknown value passes no test: what was not recorded can't accuse anybody.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator

from bubblefinder.rules.subjects import SUBJECTS, Subject, field_texts, field_types
from bubblefinder.rules.suggest import Strict

if TYPE_CHECKING:
    from typing import Self

    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

NAMING: Final = frozenset({"nvtx", "nvtx_stack", "frame", "frames"})
"""The fields that name the code behind a wait. A rule that tests one has seen a name, not a shape."""

_UNTESTED: Final = frozenset({"gpu", "process", "sites", "pauses", "ended_by", "evidence"})


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error
    return pattern


Pattern = Annotated[str, AfterValidator(_compiles)]


class Check(Strict):
    """A test on one field; at least one key of it must be there."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"tests nothing; give one of {', '.join(type(self).model_fields)}")
        return self


class Text(Check):
    """A test on a text. In short: ``"DtoH"`` or ``["DtoH", "HtoD"]``."""

    one_of: tuple[str, ...] | None = None
    matches: Pattern | None = Field(default=None, description="a regular expression that is found in it")
    lacks: Pattern | None = Field(default=None, description="a regular expression that is not found in it")

    def passes(self, value: str) -> bool:
        """Return whether the text passes."""
        return (
            (self.one_of is None or value in self.one_of)
            and (self.matches is None or re.search(self.matches, value) is not None)
            and (self.lacks is None or re.search(self.lacks, value) is None)
        )


class Texts(Check):
    """A test on a list of texts. In short: a regular expression that one of them must match."""

    any: Pattern | None = Field(default=None, description="a regular expression that is found in one of them")
    none: Pattern | None = Field(default=None, description="a regular expression that is found in none of them")
    at_least: int | None = Field(default=None, description="how many there are at least")
    at_most: int | None = Field(default=None, description="how many there are at most")

    def passes(self, values: tuple[object, ...]) -> bool:
        """Return whether the list passes."""
        texts = [str(value) for value in values]
        return (
            (self.any is None or any(re.search(self.any, text) for text in texts))
            and (self.none is None or not any(re.search(self.none, text) for text in texts))
            and (self.at_least is None or len(texts) >= self.at_least)
            and (self.at_most is None or len(texts) <= self.at_most)
        )


class Number(Check):
    """A test on a number, both limits included. In short: the number itself."""

    at_least: float | None = None
    at_most: float | None = None

    def passes(self, value: float) -> bool:
        """Return whether the number passes."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


class Flag(Check):
    """A test on a yes or no."""

    value: bool

    def passes(self, value: bool) -> bool:  # noqa: FBT001 - it is the value itself
        """Return whether the flag passes."""
        return value is self.value


def _short_text(value: object) -> object:
    if isinstance(value, str):
        return {"one_of": (value,)}
    return {"one_of": value} if isinstance(value, list) else value


def _short_texts(value: object) -> object:
    return {"any": value} if isinstance(value, str) else value


def _short_number(value: object) -> object:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return {"at_least": value, "at_most": value} if plain else value


def _short_flag(value: object) -> object:
    return {"value": value} if isinstance(value, bool) else value


TextTest = Annotated[Text, BeforeValidator(_short_text, json_schema_input_type=str | list[str] | Text)]
TextsTest = Annotated[Texts, BeforeValidator(_short_texts, json_schema_input_type=str | Texts)]
NumberTest = Annotated[Number, BeforeValidator(_short_number, json_schema_input_type=float | Number)]
FlagTest = Annotated[Flag, BeforeValidator(_short_flag, json_schema_input_type=bool)]


def _test_for(hint: object) -> Any:  # noqa: ANN401 - an annotation
    """Return the test that fits a field of this type, None for a field no rule may ask for."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if bool in kinds:
        return FlagTest
    if int in kinds or float in kinds:
        return NumberTest
    if str in kinds:
        return TextTest
    return TextsTest if str(hint).startswith("tuple") else None


class Conditions(Strict):
    """Tests by field; all of them must hold."""


def _conditions(kind: str) -> type[Conditions]:
    """Return the conditions on one kind of subject: a test for every field that a rule may ask for."""
    tests = {name: _test_for(hint) for name, hint in field_types(kind).items() if name not in _UNTESTED}
    entries: dict[str, Any] = {
        name: (test | None, Field(default=None, description=field_texts(kind).get(name)))
        for name, test in tests.items()
        if test is not None
    }
    doc = f"Conditions on a {kind}; all of them must hold."
    return create_model(f"{kind.capitalize()}Conditions", __base__=Conditions, __doc__=doc, **entries)


CONDITIONS: Final = {kind: _conditions(kind) for kind in SUBJECTS}


@dataclass(frozen=True, slots=True)
class About:
    """Marks conditions in an annotation as those on one kind of subject."""

    kind: str

    def __get_pydantic_core_schema__(self, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let pydantic validate the fields of that kind."""
        return handler.generate_schema(CONDITIONS[self.kind])


def checks_of(conditions: Conditions) -> dict[str, Text | Texts | Number | Flag]:
    """Return the tests that a table of conditions holds, by field."""
    return {name: getattr(conditions, name) for name in conditions.model_fields_set}


def holds(conditions: Conditions, subject: Subject) -> bool:
    """Return whether the subject passes every test; unknown values pass none."""
    tests = checks_of(conditions).items()
    return all((value := getattr(subject, name)) is not None and test.passes(value) for name, test in tests)


def names_code(conditions: Conditions) -> bool:
    """Return whether one of the tests is on a name in the code (an NVTX range or a frame)."""
    return not NAMING.isdisjoint(conditions.model_fields_set)
