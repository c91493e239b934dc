from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from bubblefinder.cli.rules import rules
from bubblefinder.errors import UsageError
from bubblefinder.rules.suggest import FileError

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

PACK = """
pack = "ours"
prefix = "OUR"
about = "our own loop"
[[rule]]
id = "OUR001"
name = "our-read"
title = "Our sampler reads[ {bytes}] back"
status = "drawn"
since = "0.1.0"
finds = "What our sampler does."
says = "It costs {bubble_p50_ns} a step."
remedy = "Ask the sampler team."
[[rule.wait]]
nvtx_stack = "our_sampler"
"""

CASES = """
rule = "OUR001"
[[case]]
name = "the sampler reads"
why = "The range names it."
fires = FIRES
repeat = 6
timeline = '''
nvtx    | [decode_step                           ]
nvtx    | ...[our_sampler             ]...........
api     | D.V.CCCCCCCCCCCCCCCCCCCCCS...............
gpu0 s7 | DDDDDVVVVVVVVVVVVVVVVVVVC...............
D = graph 1
V = graph 2
C = copy DtoH 8 pageable
S = cudaStreamSynchronize s7
'''
[[case]]
name = "nobody reads"
why = "Nothing waits."
fires = false
repeat = 6
timeline = '''
nvtx    | [decode_step                           ]
api     | D.V.....................................
gpu0 s7 | DDDDDVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVV
D = graph 1
V = graph 2
'''
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(rules, arguments)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ours.toml").write_text(PACK)
    return tmp_path


def test_list_shows_every_rule_of_every_pack(folder: Path) -> None:
    lines = run("list", "--rules", str(folder)).output.splitlines()
    (listed,) = (line.split() for line in lines if "SGL001" in line)
    assert listed[:4] == ["SGL001", "seq-lens-resolve", "wait", "verified"]
    assert any("OUR001" in line and line.endswith("Our sampler reads back") for line in lines)


def test_explain_takes_an_id_or_a_name(folder: Path) -> None:
    by_id, by_name = (run("explain", word, "--rules", str(folder)).output for word in ("OUR001", "our-read"))
    assert by_id == by_name
    assert "Ask the sampler team." in by_id
    assert "`nvtx_stack` has one that matches `our_sampler`" in by_id


def test_explain_suggests_a_rule() -> None:
    assert "did you mean 'SGL001'" in str(run("explain", "SGL01").exception)


def test_check_accepts_a_good_pack(folder: Path) -> None:
    assert run("check", str(folder)).output == f"{folder / 'ours.toml'}: 1 rule, no mistakes\n"


def test_check_tells_everything_that_is_wrong(folder: Path) -> None:
    path = folder / "ours.toml"
    path.write_text(PACK.replace("finds", "find").replace("nvtx_stack", "nvtx_stak"))
    error = run("check", str(path)).exception
    assert isinstance(error, FileError)
    assert error.exit_code == 2
    assert len(str(error).splitlines()) == 3


def test_the_code_of_a_quality_note_is_no_rule_but_is_explained() -> None:
    error = run("explain", "capture-mode-node").exception
    assert isinstance(error, UsageError)
    assert "docs/quality.md" in error.hint
    other = run("explain", "XYZ999").exception
    assert isinstance(other, UsageError)
    assert "quality" not in other.hint


def test_check_names_a_folder_without_packs(tmp_path: Path) -> None:
    error = run("check", str(tmp_path)).exception
    assert isinstance(error, UsageError)
    assert str(error) == f"{tmp_path}: no rule packs here"


def test_check_says_what_to_do_about_a_file_that_is_not_there(tmp_path: Path) -> None:
    error = run("check", str(tmp_path / "gone.toml")).exception
    assert isinstance(error, FileError)
    assert error.hint == "check the path"


def test_test_runs_the_cases(folder: Path) -> None:
    cases = folder / "cases"
    cases.mkdir()
    (cases / "OUR001.toml").write_text(CASES.replace("FIRES", "true"))
    result = run("test", str(cases), "--rules", str(folder))
    assert result.output == "2 cases of 1 rule: all as they should be\n"


def test_test_fails_when_a_rule_does_not_do_what_its_cases_say(folder: Path) -> None:
    cases = folder / "cases"
    cases.mkdir()
    good = CASES.replace("FIRES", "true")
    (cases / "OUR001.toml").write_text(good.replace("range names", "x").replace("[our_sampler ", "[some_sampler"))
    result = run("test", str(cases), "--rules", str(folder))
    assert result.exit_code == 1
    assert "OUR001, 'the sampler reads': it should fire; found: CUDA001 high/low" in result.output


def test_test_fails_when_a_rule_has_no_case(folder: Path) -> None:
    (folder / "cases").mkdir()
    result = run("test", str(folder / "cases"), "--rules", str(folder))
    assert result.exit_code == 1
    assert "OUR001: no case" in result.output


def test_a_pack_may_come_from_standard_input() -> None:
    done = CliRunner().invoke(rules, ["check", "-"], input=PACK)
    assert done.stdout == "-: 1 rule, no mistakes\n"


def test_the_settings_of_the_folder_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "ours.toml").write_text(PACK)
    (tmp_path / "bubblefinder.toml").write_text('rules = ["packs"]\nignore = ["SGL"]\n')
    monkeypatch.chdir(tmp_path)
    listed = CliRunner().invoke(rules, ["list"]).stdout
    assert "OUR001" in listed
    assert "SGL001" not in listed
    assert "Ask the sampler team." in CliRunner().invoke(rules, ["explain", "our-read"]).stdout
