"""Running the rules: every subject is held against every rule, and gets one headline."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from bubblefinder.causes.facts import SiteFacts
from bubblefinder.errors import UsageError
from bubblefinder.rules import code, template
from bubblefinder.rules.match import holds, names_code
from bubblefinder.rules.model import (
    CONFIDENCES,
    SEVERITIES,
    SEVERITY_SHARES,
    ExpectedMatch,
    Match,
    Verdicts,
)
from bubblefinder.rules.subjects import bubble_p50_ns, cost, identity, is_rare, kind_of, subjects
from bubblefinder.rules.suggest import did_you_mean
from bubblefinder.trace.programs import LLM

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from bubblefinder.causes.facts import Facts, StepFacts
    from bubblefinder.rules.config import Config
    from bubblefinder.rules.match import Conditions
    from bubblefinder.rules.model import Confidence, Rule, Severity
    from bubblefinder.rules.packs import Packs
    from bubblefinder.rules.subjects import Subject

EVIDENCE_ROWS: Final = 20
FEW_STEPS: Final = 3
UNVERIFIED_CEILING: Final[Severity] = "low"

_HELD: Final = (
    "No idle is charged to this wait by itself, and yet the host goes on only when it returns[, after "
    "{blocked_p50_ns} a step]."
)
_RARE: Final = "It costs that in {steps_affected} of {steps} steps, and nothing in the others."
_IDLE_IN: Final = "That idle lies in {idle_in}."
_ELSEWHERE: Final = "It is thread {other_thread} that waits; the launching thread goes on behind it in step after step."
_SENTENCE_END: Final = re.compile(r"(?<=[.!?]) ")
_UNPRICED: Final = "This capture names the call and can't say what it costs."
_BUSY: Final = ("span_share", "tandem_share", "copies_alone_share", "collective_share", "collective_most_share")
"""What rules about busy time rank by."""
_FRAMEWORK: Final = "pytorch"
"""Its functions name what was done; the engine that runs on it decides to do it."""
_NO_ENGINES: Final = (_FRAMEWORK, "python", LLM)
_CONFIDENCE: Final[dict[int, Confidence]] = {0: "high", 1: "medium", 2: "low"}


class _Fit(NamedTuple):
    """A rule that fits a subject; fits sort best first."""

    unverified: bool
    kind: int
    mildness: int
    about_any_program: bool
    evidence: int
    looseness: int
    order: int
    rule: Rule


def run_rules(facts: Facts, packs: Packs, config: Config, shown: tuple[int, int] | None = None) -> Verdicts:
    """Return what the selected rules say of a capture, worst first.

    One subject has one headline about its idle time, and one of each rule about busy time: a rule that saw a name beats
    a fingerprint, a fingerprint beats a generic rule, and of two alike the worse one wins, then the one about a
    certain program, then the one that tests more. A framework's own function names what was done, not the code that
    did it: it counts as a fingerprint. The same subject on several ranks is one finding, as severe as on the worst of
    them; its figures are those of the rank `shown`, else of the worst.
    """
    rules = tuple(rule for rule in selected(packs, config) if rule.seen is None or rule.seen in facts.programs)
    steps = {step.rank: step for step in facts.steps}
    competing = _about_idle_and_busy(rules)
    matches = [
        match
        for subject in subjects(facts)
        for alike in competing
        if (match := _judge(subject, alike, steps.get(subject.rank), config.batch, facts.programs)) is not None
    ]
    judged = [(match, _owner(match, config)) for match in sorted(_merge_ranks(matches, shown), key=_worst_first)]
    return Verdicts(
        tuple(match for match, expected in judged if expected is None),
        tuple(expected for _, expected in judged if expected is not None),
    )


def _about_idle_and_busy(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Return the rules that compete for the headline: those about idle time; each about busy time tells its own."""
    return [[rule for rule in rules if rule.share not in _BUSY], *([rule] for rule in rules if rule.share in _BUSY)]


def selected(packs: Packs, config: Config) -> tuple[Rule, ...]:
    """Return the rules that the settings ask for.

    Raises:
        UsageError: a selection fits no rule.
    """
    words = {rule.id: {rule.id, rule.name, pack.prefix, pack.pack} for pack in packs.packs for rule in pack.rule}
    known = set().union(*words.values())
    for word in (*config.select, *config.ignore):
        if word not in known and not any(rule_id.startswith(word) for rule_id in words):
            told = f"no rule or pack {word!r}{did_you_mean(word, known)}"
            raise UsageError(told, hint="see: bubblefinder rules list")

    def asked(rule: Rule, selection: Sequence[str]) -> bool:
        return any(word in words[rule.id] or rule.id.startswith(word) for word in selection)

    return tuple(
        rule
        for rule in packs.rules
        if (not config.select or asked(rule, config.select)) and not asked(rule, config.ignore)
    )


def severity_of(share: float | None) -> Severity:
    """Return the severity of a share of the decode step; info where it is unknown."""
    reached = [severity for severity, least in SEVERITY_SHARES.items() if share is not None and share >= least]
    return reached[-1] if reached else "info"


def _judge(
    subject: Subject, rules: Iterable[Rule], step: StepFacts | None, batch: int, programs: Collection[str]
) -> Match | None:
    step_p50_ns = step.step_p50_ns if step else None
    found = (_fit(rule, order, subject, step_p50_ns, batch) for order, rule in enumerate(rules))
    fits = sorted(fit for fit in found if fit is not None)
    if not fits:
        return None
    best, others = fits[0], [fit.rule for fit in fits[1:]]
    rule = best.rule
    spent = cost(subject, rule.share, step_p50_ns)
    return Match(
        rule=rule.id,
        name=rule.name,
        title=template.fill(rule.title, subject),
        severity=SEVERITIES[-best.mildness],
        confidence=_confidence(best, step),
        subject=subject,
        devices=(subject.rank,),
        sites=subject.sites if isinstance(subject, SiteFacts) else (),
        share=spent.share,
        bounded=rule.severity_at_most != "high",
        bubble_p50_ns=bubble_p50_ns(subject, rule.share),
        recoverable_ns=spent.recoverable_ns,
        message=_message(rule, others, subject, programs),
        remedy=_once(template.fill(text, subject) for text in (rule.remedy, *_remedies(rule, others, programs))),
        references=rule.references,
        also_matches=tuple(other.id for other in others),
        evidence=subject.evidence[:EVIDENCE_ROWS],
    )


def _confidence(best: _Fit, step: StepFacts | None) -> Confidence:
    """Return how well the cause is known; too few steps can't show that anything recurs."""
    if step is None or step.steps < FEW_STEPS:
        return "low"
    return min(_CONFIDENCE[best.evidence], best.rule.confidence_at_most, key=CONFIDENCES.index)


def _fit(rule: Rule, order: int, subject: Subject, step_p50_ns: float | None, batch: int) -> _Fit | None:
    """Return how well the best alternative of a rule fits, None if none does."""
    if rule.about != kind_of(subject):
        return None
    fitting = [table for table in rule.alternatives if holds(table, subject)]
    if not fitting or not code.holds(rule.code, subject, batch):
        return None
    evidence, looseness = min((_evidence(rule, table), -len(table.model_fields_set)) for table in fitting)
    severity = _severity(rule, cost(subject, rule.share, step_p50_ns).share)
    framework = rule.seen == _FRAMEWORK
    about_any = framework or rule.code is not None
    kind = max(evidence, 1) if framework else evidence
    mildness = -SEVERITIES.index(severity)
    return _Fit(rule.status == "unverified", kind, mildness, about_any, evidence, looseness, order, rule)


def _severity(rule: Rule, share: float | None) -> Severity:
    """Return the severity of a share, no higher than the rule may go."""
    unproven: Severity = UNVERIFIED_CEILING if rule.status == "unverified" else "high"
    return min(severity_of(share), rule.severity_at_most, unproven, key=SEVERITIES.index)


def _evidence(rule: Rule, conditions: Conditions) -> int:
    """Return 0 for a name in the code, 1 for a fingerprint, 2 for a generic rule."""
    if rule.generic:
        return 2
    return 0 if names_code(conditions) else 1


def _remedies(rule: Rule, others: Iterable[Rule], programs: Collection[str]) -> tuple[str, ...]:
    """Return what a rule adds where a library is seen, and the cures of the engine's rules that fit as well."""
    added = (advice.remedy for advice in rule.advice_for(programs) if advice.remedy)
    return (*added, *(other.remedy for other in _of_an_engine(others)))


def _once(texts: Iterable[str]) -> str:
    """Join what rules say, without the sentences that an earlier one said already."""
    return " ".join(dict.fromkeys(sentence for text in texts for sentence in _SENTENCE_END.split(text)))


def _of_an_engine(rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules that were asked of an engine which the capture shows at work."""
    return [rule for rule in rules if rule.seen is not None and rule.seen not in _NO_ENGINES]


def _message(rule: Rule, others: Sequence[Rule], subject: Subject, programs: Collection[str]) -> str:
    """Return what the rule says, and who it could be where it can't tell."""
    if isinstance(subject, SiteFacts) and subject.held:
        return template.fill(_HELD, subject)
    if isinstance(subject, SiteFacts) and subject.bubble_p50_ns is None and subject.steps_affected:
        return _UNPRICED
    beside = _of_any_wait(rule, subject) if isinstance(subject, SiteFacts) else ()
    said = " ".join(template.fill(text, subject) for text in (rule.says, *beside))
    if not rule.generic:
        return " ".join((said, *(f"{template.fill(one.title, subject)} ({one.id})." for one in _of_an_engine(others))))
    guesses = [*(f"{template.fill(other.title, subject)} ({other.id})" for other in others if not other.generic)]
    theirs = (candidate for advice in rule.advice_for(programs) for candidate in advice.candidates)
    candidates = [*guesses, *theirs, *rule.candidates]
    return f"{said} It could be: {'; '.join(candidates)}." if candidates else said


def _of_any_wait(rule: Rule, wait: SiteFacts) -> Iterator[str]:
    """Yield what is said of a wait beside what its rule says."""
    if is_rare(wait) and "steps_affected" not in template.names(rule.says):
        yield _RARE
    if any(not text.startswith(f"{wait.nvtx} (") for text in wait.idle_in):
        yield _IDLE_IN
    if wait.other_thread:
        yield _ELSEWHERE


def _merge_ranks(matches: Iterable[Match], shown: tuple[int, int] | None) -> list[Match]:
    """Return the matches with those of one rule and one subject on several ranks made one."""

    def same(match: Match) -> tuple[str, str]:
        return match.rule, repr(identity(match.subject))

    merged = []
    for _, alike in groupby(sorted(matches, key=same), key=same):
        merged += _merge(list(alike), shown)
    return merged


def _merge(alike: list[Match], shown: tuple[int, int] | None) -> list[Match]:
    """Merge over ranks; two of one rank stay apart."""
    ranks = [match.devices[0] for match in alike]
    if len(set(ranks)) < len(ranks) or len(ranks) == 1:
        return alike
    worst = min(alike, key=_worst_first)
    told = next((match for match in alike if match.devices[0] == shown), worst)
    ordered = sorted(alike, key=lambda match: match.devices)
    share = EVIDENCE_ROWS // len(ordered)
    return [
        replace(
            told,
            severity=worst.severity,
            devices=tuple(match.devices[0] for match in ordered),
            sites=tuple(site for match in ordered for site in match.sites),
            also_matches=tuple(dict.fromkeys(rule for match in ordered for rule in match.also_matches)),
            evidence=tuple(row for match in ordered for row in match.evidence[:share]),
        )
    ]


def _worst_first(match: Match) -> tuple[int, bool, float, int, str]:
    """Order by severity, then by what a cure gives back, alone or in its turn.

    What a rule may not tell gravely is an upper bound or no idle time: it comes behind what has a price.
    """
    severity, confidence = SEVERITIES.index(match.severity), CONFIDENCES.index(match.confidence)
    return -severity, match.bounded, -(match.share or 0.0), -confidence, match.rule


def _owner(match: Match, config: Config) -> ExpectedMatch | None:
    entry = next((entry for entry in config.expected if entry.covers(match)), None)
    return ExpectedMatch(match, entry.reason, entry.owner) if entry else None
