from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.rules.model import Pack
from bubblefinder.rules.suggest import FileError, did_you_mean, load, read_toml, validate

if TYPE_CHECKING:
    from pathlib import Path

RULE = {
    "id": "SG001",
    "name": "Bad Name",
    "title": "x",
    "status": "drawn",
    "sincee": "0.1.0",
    "finds": "x",
    "says": "x",
    "remedy": "x",
    "wait": [{"copy_kid": "DtoH", "bytes": {"at_mst": 3}, "nvtx": {"matches": "("}}],
}


def test_every_mistake_is_told_with_file_key_and_suggestion() -> None:
    with pytest.raises(FileError) as error:
        validate(Pack, {"pack": "mine", "prefix": "SG", "abut": "x", "rule": [RULE]}, "mine.toml")
    lines = str(error.value).splitlines()
    assert sorted(lines) == [
        "mine.toml: about: is missing",
        "mine.toml: abut: unknown key; did you mean 'about'?",
        "mine.toml: rule SG001, name: string should match pattern '^[a-z0-9]+(-[a-z0-9]+)*$'",
        "mine.toml: rule SG001, since: is missing",
        "mine.toml: rule SG001, sincee: unknown key; did you mean 'since'?",
        "mine.toml: rule SG001, wait[0].bytes.at_mst: unknown key; did you mean 'at_most'?",
        "mine.toml: rule SG001, wait[0].copy_kid: unknown key; did you mean 'copy_kind'?",
        (
            "mine.toml: rule SG001, wait[0].nvtx.matches: is no regular expression: missing ), "
            "unterminated subpattern at position 0"
        ),
    ]


def test_a_mistake_in_a_file_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('pack = "mine"\nabut = "x"\n[[rule]]\nid = "SG001"\n[[rule]]\nid = "SG002"\nsincee = "0.1.0"\n')
    with pytest.raises(FileError) as error:
        load(Pack, path)
    lines = str(error.value).splitlines()
    assert f"{path}: line 2, abut: unknown key; did you mean 'about'?" in lines
    assert f"{path}: line 7, rule SG002, sincee: unknown key; did you mean 'since'?" in lines
    assert f"{path}: line 3, rule SG001, since: is missing" in lines
    assert f"{path}: prefix: is missing" in lines


def test_a_suggestion_only_when_something_is_near() -> None:
    assert did_you_mean("zzz", ["copy_kind"]) == ""


def test_a_file_that_is_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("a = \n")
    with pytest.raises(FileError, match="not TOML"):
        read_toml(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="not TOML: it is no text in UTF-8"):
        read_toml(path)
    with pytest.raises(FileError, match="No such file"):
        read_toml(tmp_path / "missing.toml")
