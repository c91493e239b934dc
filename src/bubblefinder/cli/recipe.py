"""`bubblefinder recipe`: the recipe for Nsight Systems' own framework."""

from __future__ import annotations

from pathlib import Path

import typer

recipe = typer.Typer(help="Run bubblefinder as a recipe of nsys.", no_args_is_help=True, rich_markup_mode=None)


@recipe.callback()
def _group() -> None:
    """Nothing to do before a command."""


@recipe.command()
def path() -> None:
    """Print the line that lets `nsys recipe bubblefinder` find it."""
    typer.echo(f"export NSYS_RECIPE_PATH={Path(__file__).parents[2]}")
