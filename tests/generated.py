"""The pages that are made from the program itself; run this file to write them: ``python -m tests.generated``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from typer.main import get_command

from bubblefinder.cli.app import app
from bubblefinder.compare.metrics import METRICS, SERVING
from bubblefinder.compare.sentences import metric_label
from bubblefinder.trace.columns import FRAMES, MEANINGS
from bubblefinder.trace.request_kernels import COUNTS, REQUEST_KERNELS
from tests import rule_pages
from tests.schemas import budget_schema, diff_schema, report_schema, schema_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer._click.core import Command, Parameter

ROOT = Path(__file__).parents[1]
NOTE = "<!-- Made from the program; run `python -m tests.generated`. -->\n"


@cache
def pages() -> dict[str, str]:
    """The text of every made page by its place."""
    return {
        "docs/commands.md": commands_page(),
        "docs/metrics.md": metrics_page(),
        "docs/frames.md": frames_page(),
        "docs/request-kernels.md": request_kernels_page(),
        "docs/schema/diff-1.json": schema_file(diff_schema()),
        "docs/schema/budget-1.json": schema_file(budget_schema()),
        "docs/schema/report-1.json": schema_file(report_schema()),
        **rule_pages.pages(),
    }


def commands() -> Iterator[tuple[tuple[str, ...], Command]]:
    """Every command with the words that call it."""
    return _below(get_command(app), ())


def _below(command: Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Command]]:
    known = getattr(command, "commands", None)
    if known is None:
        yield path, command
        return
    for name in sorted(known):
        yield from _below(known[name], (*path, name))


def commands_page() -> str:
    parts = [f"{NOTE}\n# Commands\n\n`bubblefinder COMMAND --help` says the same."]
    for path, command in commands():
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        options = [one for one in command.params if one.param_type_name == "option"]
        usage = " ".join(["bubblefinder", *path, *map(_argument, arguments)])
        rows = [f"| {_option(one)} | {_cell(getattr(one, 'help', ''))} |" for one in options]
        table = ["| option | |", "|---|---|", *rows] if rows else []
        parts.append(
            "\n".join([f"## {' '.join(path)}", "", f"    {usage}", "", _text(command.help), "", *table]).strip()
        )
    return "\n\n".join(parts) + "\n"


def metrics_page() -> str:
    head = "What can be limited, gated and tracked; `bubblefinder metrics` lists it too.\n"
    rows = [
        f"| `{m.id}` | {_label(m.id)} | {m.unit} | {m.better} | {', '.join(m.dimensions) or '-'} | {m.meaning} |"
        for m in (*METRICS.values(), *SERVING.values())
    ]
    table = "\n".join(["| id | is called | unit | better | by | meaning |", "|---|---|---|---|---|---|", *rows])
    return f"{NOTE}\n# Metrics\n\n{head}\n{table}\n"


def _label(metric: str) -> str:
    label = metric_label(metric)
    return "-" if label == metric else label


def frames_page() -> str:
    head = (
        "What `bubblefinder.analysis(path).trace` holds: polars frames with one row an event, sorted by begin and end "
        "where they have them; operations of one GPU lie together.\n"
    )
    parts = [f"{NOTE}\n# Frames\n\n{head}"]
    for name, columns in FRAMES.items():
        rows = [f"| `{column}` | {field.dtype} | {field.meaning} |" for column, field in columns.items()]
        parts.append("\n".join([f"## {name}\n\n{MEANINGS[name]}\n\n| column | type | |\n|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def request_kernels_page() -> str:
    head = (
        "How many requests a step serves is told by NVTX ranges, or by kernels whose sources launch one block a "
        "request along x. [Decode steps](steps.md#requests) says how they are weighed.\n"
    )
    rows = [
        f"| `{_cell(one.name)}`{f' of `{one.within}`' if one.within else ''} "
        f"| {one.counts}{f' and {one.beside} more' if one.beside else ''} | {one.side} "
        f"| {'yes' if one.seen else 'no'} | {one.source} |"
        for one in REQUEST_KERNELS
    ]
    columns = "| kernel | its blocks | the pass | in a sample | read in |\n|---|---|---|---|---|"
    meanings = [f"* `{counts}`: {meaning}" for counts, meaning in COUNTS.items()]
    return "\n".join([f"{NOTE}\n# Kernels that count requests\n\n{head}", columns, *rows, "", *meanings]) + "\n"


def _argument(one: Parameter) -> str:
    name = str(one.metavar or (one.name or "").upper())
    return (name if one.required else f"[{name}]") + ("..." if one.nargs != 1 else "")


def _option(one: Parameter) -> str:
    takes = getattr(one, "metavar", None)
    names = ", ".join(f"`{name}`" for name in one.opts)
    return f"{names} {takes}" if takes else names


def _text(text: str | None) -> str:
    return "\n".join(line.strip() for line in (text or "").splitlines()).strip()


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    for place, text in pages().items():
        (ROOT / place).write_text(text)
