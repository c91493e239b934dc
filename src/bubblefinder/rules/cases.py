"""Case files: drawn timelines on which a rule must fire, and others on which it must not.

A case draws one step or a few and says how often the picture is repeated, since a rule judges recurring idle.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, model_validator

from bubblefinder.causes.accepted import with_accept_length
from bubblefinder.pipeline import Analysis
from bubblefinder.rules.config import Config
from bubblefinder.rules.engine import run_rules
from bubblefinder.rules.model import Confidence, Line, Program, RuleId, Severity
from bubblefinder.rules.suggest import Strict, load
from bubblefinder.trace.drawn import draw

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Self

    from bubblefinder.rules.model import Match
    from bubblefinder.rules.packs import Packs

_TRACK: Final = re.compile(r"^(?P<label>[^|]*\|)(?P<cells>.*)$", re.MULTILINE)


class Case(Strict):
    """One drawn timeline and what the rule says of it."""

    name: Line
    why: Line = Field(description="why the rule fires, or must not")
    fires: bool
    severity: Severity | None = None
    confidence: Confidence | None = None
    headline: RuleId | None = Field(
        default=None,
        description="the rule that must be the finding in its place, this one only listed as also matching",
    )
    programs: tuple[Program, ...] = Field(
        default=(), description="libraries that the capture shows at work beside what is drawn"
    )
    accept_length: float | None = Field(default=None, description="tokens a verify pass commits, as a benchmark says")
    timeline: str = Field(description="one step or a few, drawn; see bubblefinder.trace.drawn")
    repeat: Annotated[int, Field(ge=1)] = Field(default=1, description="how often the picture follows itself")
    us_per_char: float = Field(default=10, gt=0)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if (not self.fires or self.headline) and (self.severity or self.confidence):
            raise ValueError("severity and confidence are those of a rule that fires and is the headline")
        return self


class CaseFile(Strict):
    """The cases of one rule."""

    rule: RuleId
    case: tuple[Case, ...]

    @model_validator(mode="after")
    def _has_both_kinds(self) -> Self:
        if {case.fires for case in self.case} != {True, False}:
            raise ValueError("a rule needs a case in which it fires and one in which it must not")
        return self


def read_cases(path: Path) -> CaseFile:
    """Return a case file.

    Raises:
        FileError: with every mistake in it.
    """
    return load(CaseFile, path)


def picture(case: Case) -> str:
    """Return the drawn timeline, repeated as often as the case says."""
    tracks = [match for match in _TRACK.finditer(case.timeline) if "=" not in match["label"]]
    width = max((len(track["cells"]) for track in tracks), default=1)

    def longer(track: re.Match[str]) -> str:
        if "=" in track["label"]:
            return track[0]
        cells = track["cells"].ljust(width)
        return track["label"] + cells[:1] + cells[1:] * case.repeat

    return _TRACK.sub(longer, case.timeline)


def judge(case: Case, packs: Packs) -> tuple[Match, ...]:
    """Return the findings on a case's timeline."""
    found = Analysis(draw(picture(case), us_per_char=case.us_per_char)).facts
    facts = with_accept_length(found, case.accept_length)
    seen = dict.fromkeys([*facts.programs, *case.programs])
    return run_rules(replace(facts, programs=tuple(seen)), packs, Config()).findings


def complaints(rule: str, case: Case, packs: Packs) -> list[str]:
    """Return what the findings on a case get wrong, empty if nothing."""
    findings = judge(case, packs)
    told = ", ".join(f"{match.rule} {match.severity}/{match.confidence}" for match in findings) or "nothing"
    fitting = [match for match in findings if rule in (match.rule, *match.also_matches)]
    wrong = []
    if bool(fitting) is not case.fires:
        wrong.append(f"it should {'' if case.fires else 'not '}fire")
    headline = case.headline or (rule if case.fires else None)
    if headline and headline not in {match.rule for match in findings}:
        wrong.append(f"{headline} should be the finding")
    wrong += [
        f"{name} should be {wanted}"
        for name, wanted in (("severity", case.severity), ("confidence", case.confidence))
        if wanted and any(getattr(match, name) != wanted for match in fitting)
    ]
    return [f"{rule}, {case.name!r}: {problem}; found: {told}" for problem in wrong]


def untested(rules: Iterable[str], files: Iterable[CaseFile]) -> list[str]:
    """Return the rules that no case file is about."""
    return sorted(set(rules) - {file.rule for file in files})
