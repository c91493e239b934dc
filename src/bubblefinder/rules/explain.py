"""Rules in words: the page of each, the list of all, the fields that conditions can ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.rules.engine import FEW_STEPS
from bubblefinder.rules.match import Flag, Number, Text, Texts, checks_of, names_code
from bubblefinder.rules.model import SEVERITY_SHARES
from bubblefinder.rules.subjects import SUBJECTS, field_texts
from bubblefinder.units import share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.rules.cases import Case
    from bubblefinder.rules.match import Conditions
    from bubblefinder.rules.model import Advice, Pack, Rule
    from bubblefinder.rules.packs import Packs

STATUSES: Final = {
    "verified": "fired, and was right, on the capture named",
    "drawn": "proven on drawn timelines; no capture of it has been seen",
    "unverified": "written from sources alone; no capture of this program has been seen, so it stays at low",
}
_PREFACE: Final = """\
Severity says how much of a decode step a finding could give back: under {low} **info**, {steps}.
It comes from replaying the recorded step without the wait; where no replay was made, from the idle charged
to it, which is more than can be recovered.

Confidence says how well the code behind it is known: **high** for a name seen in an NVTX range or a frame,
**medium** for a fingerprint of calls and copies, **low** for a shape that many programs leave, and for anything
told from fewer than {few} steps. One wait has one finding: a name beats a fingerprint, a fingerprint beats a
generic rule, and the others are listed as also matching."""
_REMARK: Final = "<!-- Made from the rule pack and its case file; edit those. -->"


def page(pack: Pack, rule: Rule, cases: Sequence[Case] = ()) -> str:
    """Return the documentation of a rule in Markdown: what it finds, when, what to do, and the drawn cases."""
    parts = [
        f"# {rule.id}: {rule.name}",
        _facts(pack, rule),
        "## What it finds\n\n" + rule.finds,
        "## When it fires\n\n" + _conditions(rule),
        "## What to do\n\n" + rule.remedy,
    ]
    if rule.candidates:
        parts.append("It could be:\n\n" + "\n".join(f"- {candidate}" for candidate in rule.candidates))
    parts += [_advice(advice) for advice in rule.advice]
    if rule.references:
        parts.append("## References\n\n" + "\n".join(f"- {_link(reference)}" for reference in rule.references))
    if cases:
        parts.append("## Cases\n\n" + "\n\n".join(_case(case) for case in cases))
    return "\n\n".join(parts) + "\n"


def written_page(pack: Pack, rule: Rule, cases: Sequence[Case]) -> str:
    """Return the page as it lies in docs/rules."""
    return f"{_REMARK}\n\n{page(pack, rule, cases)}"


def index(packs: Packs) -> str:
    """Return the page that lists every rule, pack by pack, and says how severity and confidence come about."""
    lines = [_REMARK, "", "# Rules", "", *_severities(), ""]
    for pack in packs.packs:
        checked = f" Read from {pack.checked}." if pack.checked else ""
        lines += [
            f"## {pack.pack}",
            "",
            f"{pack.about}{checked}",
            "",
            "| rule | name | about | status |",
            "|---|---|---|---|",
        ]
        lines += [f"| [{rule.id}]({rule.id}.md) | {rule.name} | {rule.about} | {rule.status} |" for rule in pack.rule]
        lines.append("")
    return "\n".join(lines)


def fields_page() -> str:
    """Return the page that says which fields conditions and texts can name, by subject."""
    lines = [
        _REMARK,
        "",
        "# Fields",
        "",
        "What the conditions and texts of a rule can name. Unknown values pass no test.",
        "",
    ]
    for kind, record in SUBJECTS.items():
        summary = (record.__doc__ or "").strip().splitlines()[0]
        lines += [f"## {kind}", "", summary, "", "| field | meaning |", "|---|---|"]
        lines += [f"| `{name}` | {_cell(text)} |" for name, text in field_texts(kind).items()]
        lines.append("")
    return "\n".join(lines)


def _severities() -> list[str]:
    steps = ", ".join(f"from {share(least, 0)} **{severity}**" for severity, least in SEVERITY_SHARES.items())
    return _PREFACE.format(few=FEW_STEPS, low=share(SEVERITY_SHARES["low"], 0), steps=steps).splitlines()


def _facts(pack: Pack, rule: Rule) -> str:
    rows = [
        ("title", _cell(rule.title)),
        ("pack", pack.pack),
        ("about", f"a {rule.about}"),
        ("status", f"{rule.status}: {STATUSES[rule.status]}"),
        *(("fired on", "; ".join(f"{one.program} ({one.capture})" for one in rule.fired_on)),) * bool(rule.fired_on),
        ("since", rule.since),
        ("severity", "by the share of the step" + (f", at most {rule.severity_at_most}" if _capped(rule) else "")),
        ("confidence", _confidence(rule)),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def _advice(advice: Advice) -> str:
    """Return what a rule adds where a library is seen."""
    candidates = "\n".join(f"- {candidate}" for candidate in advice.candidates)
    parts = (
        f"Where {advice.seen} is seen:",
        advice.remedy or "",
        f"It could be:\n\n{candidates}" if candidates else "",
    )
    return "\n\n".join(part for part in parts if part)


def _capped(rule: Rule) -> bool:
    return rule.severity_at_most != "high"


def _confidence(rule: Rule) -> str:
    if rule.generic:
        return "low: it tells what happened, not which code did it"
    named = {names_code(table) for table in rule.alternatives}
    words = {True: "high: a name", False: "medium: a fingerprint"}
    told = ", ".join(words[kind] for kind in sorted(named, reverse=True))
    return f"{told}; at most {rule.confidence_at_most}" if rule.confidence_at_most != "high" else told


def _conditions(rule: Rule) -> str:
    tables = ["\n".join(f"- {words}" for words in _tests(table)) for table in rule.alternatives]
    seen = f"\n\nAnd {rule.seen} is seen at work." if rule.seen else ""
    code = f"\n\nAnd the check `{rule.code}` holds." if rule.code else ""
    return "All of:\n\n" + "\n\nor all of:\n\n".join(tables) + code + seen


def _tests(table: Conditions) -> list[str]:
    return [f"`{name}` {_words(test)}" for name, test in sorted(checks_of(table).items())]


def _words(test: Text | Texts | Number | Flag) -> str:
    match test:
        case Flag():
            return "is true" if test.value else "is false"
        case Number() if test.at_least == test.at_most:
            return f"is {test.at_least:g}"
        case Text() if test.one_of is not None:
            wanted = " or ".join(f"`{text}`" for text in test.one_of)
            rest = test.model_dump(exclude_none=True, exclude={"one_of"})
            return " and ".join([f"is {wanted}", *_limits(rest)])
        case _:
            return " and ".join(_limits(test.model_dump(exclude_none=True)))


def _limits(values: dict[str, object]) -> list[str]:
    words = {
        "matches": "matches `{}`",
        "lacks": "doesn't match `{}`",
        "any": "has one that matches `{}`",
        "none": "has none that matches `{}`",
        "at_least": "is at least {:g}",
        "at_most": "is at most {:g}",
    }
    return [words[name].format(value) for name, value in values.items()]


def _case(case: Case) -> str:
    verdict = "must not fire" if not case.fires else "also matches" if case.headline else "fires"
    details = ", ".join(
        text
        for text in (
            f"severity {case.severity}" if case.severity else "",
            f"confidence {case.confidence}" if case.confidence else "",
            f"the finding is {case.headline}" if case.headline else "",
            f"the picture {case.repeat} times over" if case.repeat > 1 else "",
            f"one character is {case.us_per_char:g} us",
        )
        if text
    )
    return f"### {case.name}: {verdict}\n\n{case.why}\n\n```\n{case.timeline.strip()}\n```\n\n({details})"


def _link(reference: str) -> str:
    repository, _, number = reference.partition("#")
    return f"[{reference}](https://github.com/{repository}/issues/{number})" if number else f"<{reference}>"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
