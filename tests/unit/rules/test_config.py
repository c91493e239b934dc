from __future__ import annotations

from pathlib import Path

import pytest

from bubblefinder.errors import UsageError
from bubblefinder.rules.config import Config, find_config, load_config
from bubblefinder.rules.suggest import FileError

EXPECTED = """
ignore = ["vllm"]
rules = ["our-rules"]
batch = 4

[[expected]]
rule = ["SGL001", "blocking-read"]
reason = "this backend needs lengths on the host"
owner = "serving team"
[expected.wait]
nvtx_stack = "resolve_seq_lens_cpu"
"""


def test_settings_in_a_file_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "bubblefinder.toml"
    path.write_text(EXPECTED)
    config = load_config(path)
    assert config.ignore == ("vllm",)
    assert config.rules == (tmp_path / "our-rules",)
    assert config.batch == 4
    assert config.expected[0].owner == "serving team"


def test_settings_in_pyproject(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text('[project]\nname = "x"\n[tool.bubblefinder]\nselect = ["core"]\n')
    assert load_config(path).select == ("core",)


def test_no_file_means_defaults() -> None:
    assert load_config(None) == Config()


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        load_config(tmp_path / "bubblefinder.toml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("slect = []", "slect: unknown key; did you mean 'select'?"),
        ("batch = 0", "batch: input should be greater than or equal to 1"),
        ('[[expected]]\nrule = "SGL001"\nreason = "x"', "expected 1, owner: is missing"),
        ('[rules]\nignore = ["SGL001"]', "rules: should be a list"),
        ('[[expected]]\nreason = "x"\nowner = "y"', "it would cover everything"),
        ('[[expected]]\nreason = "x"\nowner = "y"\n[expected.wait]\n', "it would cover everything"),
        ('[[expected]]\nreason = "x"\nowner = "y"\n[expected.wait]\nnvtxx = "a"', "did you mean 'nvtx'"),
    ],
)
def test_mistakes_are_told_with_file_and_key(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "bubblefinder.toml"
    path.write_text(text)
    with pytest.raises(FileError) as error:
        load_config(path)
    assert str(error.value).startswith(f"{path}: ")
    assert told in str(error.value)


def test_the_nearest_file_upwards_holds(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "bubblefinder.toml").write_text("")
    assert find_config(inner) == tmp_path / "bubblefinder.toml"
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.ruff]\n")
    assert find_config(inner) == tmp_path / "bubblefinder.toml"
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.bubblefinder]\n")
    assert find_config(inner) == tmp_path / "a" / "pyproject.toml"


def test_the_command_line_replaces_the_selection_and_adds_the_rest() -> None:
    config = Config(select=("core",), ignore=("FI",), rules=(Path("a"),))
    merged = config.override(select=["SGL"], ignore=["vllm"], rules=[Path("b")])
    assert (merged.select, merged.ignore, merged.rules) == (("SGL",), ("FI", "vllm"), (Path("a"), Path("b")))
    assert config.override().select == ("core",)
