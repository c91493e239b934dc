"""How a command's arguments read in its help: by their names alone, without brackets or types of Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from typer.core import TyperCommand

from bubblefinder.errors import UsageError

_WRITTEN: Final = ("-o", "--history", "--data", "out")
"""Options and arguments by which a file or a folder to write is named."""
_DASH: Final = Path("-")


class Command(TyperCommand):
    """Shows ``TRACE`` where typer shows ``{TRACE}`` and ``TRACE <path>``; takes ``-o -`` for standard output."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - the context is typer's own
        """Read the arguments: ``-`` for a file to write means that it is printed, as it is where none is named.

        Raises:
            UsageError: what is written there is never printed.
        """
        left = super().parse_args(ctx, args)
        for one in self.params:
            given = ctx.params.get(one.name)
            if {*one.opts}.isdisjoint(_WRITTEN) or _DASH not in (given if isinstance(given, list) else [given]):
                continue
            if one.required or one.default is not None or "-o" not in one.opts:
                kind, name = "folder" if one.metavar == "DIR" else "file", max(one.opts, key=len)
                raise UsageError(f"{name} - names no {kind}", hint="give the name of one")
            ctx.params[one.name] = [path for path in given if path != _DASH] if isinstance(given, list) else None
            if "quiet" in ctx.params:
                ctx.params["quiet"] = False
        return left

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401 - the context is typer's own
        """Return the words of the usage line; what may be left out stays in square brackets."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - both are typer's own
        """Write the arguments by name, then the options."""
        records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for one in self.get_params(ctx):
            if record := one.get_help_record(ctx):
                name = record[0].partition(" <")[0] if one.param_type_name == "argument" else record[0]
                records[one.param_type_name].append((name, record[1]))
        for kind, found in records.items():
            if found:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(found)
