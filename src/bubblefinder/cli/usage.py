"""How a command's arguments read in its help: by their names alone, without brackets or types of Python."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """Shows ``TRACE`` where typer shows ``{TRACE}`` and ``TRACE <path>``."""

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
