"""What is made from the rule packs: a page a rule, the list of all, the fields that conditions can ask for, schemas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from bubblefinder.rules.cases import CaseFile, read_cases
from bubblefinder.rules.config import Config
from bubblefinder.rules.engine import FEW_STEPS
from bubblefinder.rules.explain import page
from bubblefinder.rules.model import SEVERITY_SHARES
from bubblefinder.rules.packs import SCHEMAS, load_packs, schema
from bubblefinder.rules.subjects import SUBJECTS, field_texts
from bubblefinder.units import share
from tests.schemas import schema_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.rules.cases import Case
    from bubblefinder.rules.model import Pack, Rule
    from bubblefinder.rules.packs import Packs

_CASES: Final = Path(__file__).parent / "cases"
_PREFACE: Final = """\
Severity says how much of a decode step a finding could give back: under {low} **info**, {steps}.
It comes from replaying the recorded step without the wait; where no replay was made, from the idle charged
to it, which is more than can be recovered.

Confidence says how well the code behind it is known: **high** for a name seen in an NVTX range or a frame,
**medium** for a fingerprint of calls and copies, **low** for a shape that many programs leave, and for anything
told from fewer than {few} steps. One wait has one finding: a name beats a fingerprint, a fingerprint beats a
generic rule, and the others are listed as also matching."""
_REMARK: Final = "<!-- Made from the rule pack and its case file; edit those. -->"


def pages() -> dict[str, str]:
    """The text of every page and schema that the packs and their cases make, by its place."""
    packs = load_packs()
    made = {"docs/rules/README.md": index(packs), "docs/rules/fields.md": fields_page()}
    for pack in packs.packs:
        made |= {f"docs/rules/{rule.id}.md": written_page(pack, rule, _cases(rule)) for rule in pack.rule}
    made |= {f"docs/schema/{name}": schema_file(schema(name)) for name in SCHEMAS}
    made["docs/schema/cases-1.json"] = schema_file(CaseFile.model_json_schema())
    made["docs/schema/config-1.json"] = schema_file(Config.model_json_schema())
    return made


def _cases(rule: Rule) -> Sequence[Case]:
    path = _CASES / f"{rule.id}.toml"
    return read_cases(path).case if path.exists() else ()


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
