"""A rule in words: what it finds, when it fires, what to do, and the cases it is proven on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.rules.match import Flag, Number, Text, Texts, checks_of, names_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.rules.cases import Case
    from bubblefinder.rules.match import Conditions
    from bubblefinder.rules.model import Advice, Pack, Rule

STATUSES: Final = {
    "verified": "fired, and was right, on the capture named",
    "drawn": "proven on drawn timelines; no capture of it has been seen",
    "unverified": "written from sources alone; no capture of this program has been seen, so it stays at low",
}


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
