"""The shapes that there are: shipped, or in a file of the user's."""

from __future__ import annotations

from pathlib import Path

from bubblefinder.economics.hub import read_config
from bubblefinder.economics.shape import Shape
from bubblefinder.errors import UsageError
from bubblefinder.rules.shipped import shipped
from bubblefinder.rules.suggest import did_you_mean, load


def shape_names() -> list[str]:
    """Return the names of the shipped shapes."""
    return sorted(path.stem for path in _folder().glob("*.toml"))


def load_shape(name: str) -> Shape:
    """Return a shipped shape by name, or one from a file: a shape in TOML, or a Hugging Face config in JSON.

    Raises:
        UsageError: there is no such shape, or the file is wrong; the message has every mistake.
    """
    path = Path(name)
    if path.suffix == ".json":
        return read_config(path)
    if path.suffix == ".toml":
        return load(Shape, path)
    if name not in shape_names():
        hint = f"there is {', '.join(shape_names())}; or name a shape file (.toml) or a Hugging Face config.json"
        raise UsageError(f"no model shape is called {name!r}{did_you_mean(name, shape_names())}", hint=hint)
    return load(Shape, _folder() / f"{name}.toml")


def _folder() -> Path:
    return shipped() / "models"
