"""The shell parts of the GitHub actions, with the outside replaced, and that nothing is pasted into them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import processes

Check = Callable[..., dict[str, str]]
Sample = Callable[[str], Path]
Post = Callable[..., list[list[str]]]

ROOT = Path(__file__).parents[2]
ACTIONS = (ROOT / "action.yml", ROOT / "comment" / "action.yml")
PROGRAM = Path(sys.executable).with_name("bubblefinder")
BUDGET = 'version = 1\n[[budget]]\nmetric = "step.duration.p50"\nmax = "{limit}"\n'

# Answers as `gh api` would, from comments.json, and writes down every call.
GH = """#!/usr/bin/env python3
import json, os, subprocess, sys
arguments = sys.argv[2:]
with open("calls.json", "a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
if "--jq" in arguments:
    program = arguments[arguments.index("--jq") + 1]
    answer = "pulls.json" if any("/pulls" in argument for argument in arguments) else "comments.json"
    sys.exit(subprocess.run(["jq", "--raw-output", program, answer]).returncode)
"""


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Runs the judging step; returns its outputs."""

    def run(trace: Path, limit: str, **inputs: str) -> dict[str, str]:
        (tmp_path / "budget.toml").write_text(BUDGET.format(limit=limit))
        environment = {
            **os.environ,
            "BUBBLEFINDER": str(PROGRAM),
            "INPUT_TRACE": str(trace),
            "INPUT_BUDGET": "budget.toml",
            "INPUT_OUTPUT": "out folder",
            "GITHUB_OUTPUT": "outputs",
            "GITHUB_STEP_SUMMARY": "summary",
            **inputs,
        }
        processes.run(["bash", ROOT / ".ci/check.sh"], cwd=tmp_path, env=environment, check=True)
        return dict(line.split("=", 1) for line in (tmp_path / "outputs").read_text().splitlines())

    return run


@pytest.mark.parametrize(("limit", "verdict"), [("4.4 ms", "pass"), ("4 ms", "fail"), ("fast", "error")])
def test_the_verdict_is_an_output_and_the_reports_are_there(
    check: Check, sample: Sample, tmp_path: Path, limit: str, verdict: str
) -> None:
    outputs = check(sample("null_gpu_1.graph"), limit)
    assert outputs["verdict"] == verdict
    assert outputs["exit-code"] == {"pass": "0", "fail": "1", "error": "2"}[verdict]
    assert (tmp_path / outputs["report"]).read_text().startswith("<!doctype html>")
    comment = (tmp_path / outputs["comment-file"]).read_text()
    assert comment.endswith("<!-- bubblefinder:budget -->\n")
    assert (tmp_path / "summary").read_text() == comment


def test_what_can_not_be_read_or_told_is_unknown(check: Check, sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "$(touch pasted).sqlite").write_text("no capture")
    assert check(tmp_path / "$(touch pasted).sqlite", "4 ms")["verdict"] == "unknown"
    assert not (tmp_path / "pasted").exists()
    assert check(sample("dspark_before.nsys2023.graph"), "4 ms")["verdict"] == "unknown"


def test_several_baselines_come_one_a_line(check: Check, sample: Sample, tmp_path: Path) -> None:
    baselines = "\n".join(str(sample(f"null_gpu_{number}.graph")) for number in (2, 3))
    check(sample("null_gpu_1.graph"), "4.4 ms", INPUT_BASELINE=baselines + "\n")
    judged = json.loads((tmp_path / "out folder" / "budget.json").read_text())
    assert judged["baseline"] == "null_gpu_2.graph.sqlite.xz, null_gpu_3.graph.sqlite.xz"


@pytest.mark.parametrize(
    ("fail_on", "codes"),
    [("unknown", "01234"), ("fail", "01204"), ("never", "00204"), ("sometimes", "02222")],
)
def test_what_fails_the_job_is_a_choice(fail_on: str, codes: str) -> None:
    got = ""
    for code in "01234":
        environment = {**os.environ, "INPUT_FAIL_ON": fail_on, "EXIT_CODE": code}
        got += str(processes.run(["bash", ROOT / ".ci/answer.sh"], env=environment).returncode)
    assert got == codes


@pytest.fixture
def post(tmp_path: Path) -> Post:
    """Runs the commenting step against the given pull requests and comments; returns the calls that wrote."""
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)

    def run(pulls: list[Any], comments: list[Any], body: str = OURS) -> list[list[str]]:
        for name, content in (
            ("pulls.json", json.dumps(pulls)),
            ("comments.json", json.dumps(comments)),
            ("body.md", body),
        ):
            (tmp_path / name).write_text(content)
        environment = {
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "INPUT_FILE": "body.md",
            "GITHUB_REPOSITORY": "o/r",
            "HEAD_OWNER": "fork",
            "HEAD_BRANCH": "feature",
            "HEAD_SHA": "abc",
        }
        processes.run(["bash", ROOT / ".ci/comment.sh"], cwd=tmp_path, env=environment, check=True)
        calls = (tmp_path / "calls.json").read_text().splitlines()
        return [call for call in map(json.loads, calls) if {"POST", "PATCH"} & set(call)]

    return run


OURS = "text\n<!-- bubblefinder:budget -->\n"
PULL = {"number": 7, "head": {"sha": "abc"}}
MINE = {"id": 5, "user": {"login": "github-actions[bot]"}, "body": "old\n<!-- bubblefinder:budget -->\n"}


def test_the_first_comment_is_posted_and_the_next_updates_it(post: Post) -> None:
    assert post([PULL], [])[0][-3:] == ["repos/o/r/issues/7/comments", "-F", "body=@body.md"]
    updated = post([PULL], [MINE | {"user": {"login": "someone"}, "id": 4}, MINE])[-1]
    assert updated[-3:] == ["repos/o/r/issues/comments/5", "-F", "body=@body.md"]
    assert "PATCH" in updated


def test_nothing_is_posted_without_the_pull_request_of_this_commit(post: Post) -> None:
    assert post([], []) == []
    assert post([PULL | {"head": {"sha": "other"}}], []) == []


@pytest.mark.parametrize(
    "body", ["no marker\n", "<!-- bubblefinder:$(x) -->\n", "x" * 70_000 + "\n<!-- bubblefinder:a -->\n"], ids=len
)
def test_what_is_no_comment_of_ours_is_refused(post: Post, body: str) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        post([PULL], [], body)


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.parent.name)
def test_actions_are_pinned_and_no_expression_reaches_a_script(path: Path) -> None:
    text = path.read_text()
    for used in re.findall(r"uses: (\S+)", text):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", used)
    scripts = re.findall(r"^ +run: (.*)$", text, re.MULTILINE)
    assert len(scripts) == text.count("run: ")
    assert [script for script in scripts if "${{" in script or script.strip() in {"|", ">"}] == []
