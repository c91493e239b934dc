"""What a capture is and can answer, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from bubblefinder.render.kit.text import show
from bubblefinder.units import plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from bubblefinder.report.examination import Examination

_NOUNS: Final = {"copy": "copies"}


def print_examination(examination: Examination) -> None:
    """Print the examination to standard output."""
    show(lambda _: Group(*_opening(examination), *_told(examination)))


def _opening(examination: Examination) -> Iterator[RenderableType]:
    info = examination.info
    versions = (
        ("nsys", info.nsys_version),
        ("schema", info.schema_version),
        ("CUPTI", info.cupti_version),
        ("driver", info.driver_version),
        ("CUDA", info.cuda_version),
    )
    told = ", ".join(f"{name} {printable(value) if value else 'unknown'}" for name, value in versions)
    yield Text(f"{printable(info.name)}: {info.format} export, {told}", style="bold")
    held = [plural(number, noun, _NOUNS.get(noun, "")) for noun, number in examination.rows if number]
    yield Text(f"holds {', '.join(held) or 'nothing'}")


def _told(examination: Examination) -> Iterator[RenderableType]:
    table = Table(box=None, show_header=False, pad_edge=False)
    for question, answer in examination.answers:
        table.add_row(Text(f"{question}?"), Text(answer))
    yield Text("\nCan it say", style="bold")
    yield table
    if examination.ranges:
        repeated = ", ".join(f"{printable(text, 60)} ×{number}" for text, number in examination.ranges)
        yield Text(f"\nNVTX ranges that repeat: {repeated}")
    if examination.notes:
        yield Text("\nQuality", style="bold")
    for note in examination.notes:
        row = Table.grid(padding=(0, 1))
        row.add_row(Text(f"  {note.level:<5}"), Text(f"{printable(note.message, 600)} [{note.code}]"))
        yield row
    if examination.command:
        yield Text(f"\nTo {examination.purpose}: {examination.command}", no_wrap=True, overflow="ignore")
