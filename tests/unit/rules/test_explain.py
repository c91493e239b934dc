from __future__ import annotations

from bubblefinder.rules.cases import Case
from bubblefinder.rules.explain import page
from bubblefinder.rules.model import Pack
from bubblefinder.rules.packs import load_packs
from tests.rule_pages import fields_page, index

PACK = Pack.model_validate(
    {
        "pack": "ours",
        "prefix": "OUR",
        "about": "x",
        "rule": [
            {
                "id": "OUR001",
                "name": "our-read",
                "title": "a|b",
                "status": "drawn",
                "since": "0.1.0",
                "severity_at_most": "low",
                "finds": "Reads of\nours.",
                "says": "x",
                "remedy": "Ask us.",
                "candidates": ["this", "that"],
                "references": ["sgl-project/sglang#1", "https://example.com/x"],
                "wait": [
                    {"copy_kind": ["DtoH", "HtoD"], "bytes": {"at_most": 8}, "private_stream": False},
                    {"nvtx_stack": "ours", "per_step_count": 1},
                ],
            }
        ],
    }
)


def test_a_page_says_when_a_rule_fires_and_what_to_do() -> None:
    text = page(PACK, PACK.rule[0])
    for line in (
        "| title | a\\|b |",
        "| severity | by the share of the step, at most low |",
        "| confidence | high: a name, medium: a fingerprint |",
        "Reads of ours.",
        "- `bytes` is at most 8",
        "- `copy_kind` is `DtoH` or `HtoD`",
        "- `private_stream` is false",
        "or all of:",
        "- `nvtx_stack` has one that matches `ours`",
        "- `per_step_count` is 1",
        "- this",
        "- [sgl-project/sglang#1](https://github.com/sgl-project/sglang/issues/1)",
        "- <https://example.com/x>",
    ):
        assert line in text.splitlines(), line
    assert "## Cases" not in text


def test_a_page_shows_the_cases_as_they_are_drawn() -> None:
    case = Case(name="a read", why="It blocks.", fires=True, severity="high", timeline="\napi | A\n", repeat=3)
    text = page(PACK, PACK.rule[0], [case])
    assert "### a read: fires\n\nIt blocks.\n\n```\napi | A\n```" in text
    assert "(severity high, the picture 3 times over, one character is 10 us)" in text


def test_the_index_lists_every_rule() -> None:
    text = index(load_packs())
    assert all(f"[{rule.id}]({rule.id}.md)" in text for rule in load_packs().rules)
    assert "from 10 % **high**" in text


def test_the_fields_of_every_subject_are_explained() -> None:
    text = fields_page()
    assert "| `recoverable_ns` |" in text
    assert "| `glue_kernels` |" in text
