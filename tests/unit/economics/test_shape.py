from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.economics.shapes import load_shape, shape_names
from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

OWN = """
name = "own"
source = "a test"
hidden = 64
vocabulary = 100
[[attention]]
kind = "gqa"
layers = 2
parameters = 1000
kv_values = 32
[dtype]
weights = "bf16"
head = "bf16"
gate = "bf16"
"""


def own(tmp_path: Path, text: str) -> str:
    path = tmp_path / "own.toml"
    path.write_text(text)
    return str(path)


def test_every_shipped_shape_is_whole() -> None:
    assert "ling-3.0-flash" in shape_names()
    for shape in map(load_shape, shape_names()):
        assert shape.layers == 42
        assert shape.attention_parameters > 0
        assert shape.source


def test_a_shape_of_one_s_own(tmp_path: Path) -> None:
    shape = load_shape(own(tmp_path, OWN))
    assert (shape.layers, shape.attention_parameters, shape.feed_forward_parameters) == (2, 2000, 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("parameters = 1000\n", ""), "attention gqa: give parameters"),
        (('kind = "gqa"', 'knid = "gqa"'), "did you mean 'kind'"),
        (("hidden = 64", "hidden = 0"), "hidden"),
        (('weights = "bf16"', 'weights = "bf17"'), "weights"),
        (("[dtype]", "[dense]\nlayers = 3\nwidth = 8\n[dtype]"), "3 feed-forward layers in a model of 2"),
        (("[dtype]", '[speculative]\nlayers = 1\nkind = "mla"\n[dtype]'), "mla is no kind of attention here"),
        (("[dtype]", "[experts]\nlayers = 2\ncount = 4\ntop = 8\nwidth = 8\n[dtype]"), "top is larger"),
    ],
)
def test_mistakes_in_a_shape_are_named(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        load_shape(own(tmp_path, OWN.replace(*change)))


def test_a_name_that_is_none_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'ling-3\.0-flash'"):
        load_shape("ling-3-flash")


def test_more_experts_than_active_parameters(tmp_path: Path) -> None:
    text = OWN.replace("parameters = 1000\n", "").replace("hidden = 64", "hidden = 64\nactive_parameters = 10")
    with pytest.raises(UsageError, match="more than active_parameters"):
        load_shape(own(tmp_path, text.replace("[dtype]", "[dense]\nlayers = 2\nwidth = 64\n[dtype]")))
