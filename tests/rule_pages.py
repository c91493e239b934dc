"""The pages in docs/rules: one a rule, the list of all, and the fields that conditions can ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.rules.engine import FEW_STEPS
from bubblefinder.rules.explain import page
from bubblefinder.rules.model import SEVERITY_SHARES
from bubblefinder.rules.subjects import SUBJECTS, field_texts
from bubblefinder.units import share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.rules.cases import Case
    from bubblefinder.rules.model import Pack, Rule
    from bubblefinder.rules.packs import Packs

_PREFACE: Final = """\
Severity says how much of a decode step a finding could give back: under {low} **info**, {steps}.
It comes from replaying the recorded step without the wait; where no replay was made, from the idle charged
to it, which is more than can be recovered.

Confidence says how well the code behind it is known: **high** for a name seen in an NVTX range or a frame,
**medium** for a fingerprint of calls and copies, **low** for a shape that many programs leave, and for anything
told from fewer than {few} steps. One wait has one finding: a name beats a fingerprint, a fingerprint beats a
generic rule, and the others are listed as also matching."""
_REMARK: Final = "<!-- Made from the rule pack and its case file; edit those. -->"


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


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
