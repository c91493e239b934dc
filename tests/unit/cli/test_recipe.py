from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from bubblefinder.cli.app import app


def test_the_line_names_the_folder_that_holds_the_recipe() -> None:
    said = CliRunner().invoke(app, ["recipe", "path"]).stdout.strip()
    place = Path(said.removeprefix("export NSYS_RECIPE_PATH="))
    assert (place / "bubblefinder" / "metadata.json").is_file()
    assert (place / "bubblefinder" / "recipe.py").is_file()
