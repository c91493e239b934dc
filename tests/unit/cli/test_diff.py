"""`bubblefinder diff` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from bubblefinder.cli.app import app, main
from bubblefinder.cli.diff import spread_sides
from bubblefinder.compare.history import add
from bubblefinder.compare.store import open_store
from bubblefinder.errors import UsageError, for_bisect
from bubblefinder.report.json import render
from tests import command
from tests.benches import sglang
from tests.unit.compare.builders import MS, a_report

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

pytestmark = pytest.mark.usefixtures("read_once")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["diff", *map(str, arguments)])


@pytest.fixture
def saved(tmp_path: Path) -> Any:
    """Writes a report and returns its path."""

    def save(name: str, **more: Any) -> Path:
        path = tmp_path / f"{name}.json"
        path.write_text(render(a_report(name, **more)))
        return path

    return save


@pytest.mark.parametrize(
    ("more", "code", "verdict"),
    [
        ({"seed": 2}, 0, "No change"),
        ({"host_late": 1 * MS}, 1, "Regression"),
        ({"busy": 5 * MS}, 0, "Improvement"),
        ({"mode": "graph", "intra_graph": None}, 3, "Can't be compared"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_exit_code_follows_the_verdict(saved: Any, more: dict[str, Any], code: int, verdict: str) -> None:
    done = run(saved("base"), saved("head", **more))
    assert done.exit_code == code
    assert done.stdout.startswith(verdict)


def test_each_side_has_its_benchmark(saved: Any, tmp_path: Path) -> None:
    files = [tmp_path / "before.jsonl", tmp_path / "after.jsonl"]
    for file, tpot in zip(files, (2.3, 4.0), strict=True):
        file.write_text(json.dumps(sglang(mean_tpot_ms=tpot, accept_length=3.0)))
    sides = saved("base"), saved("head", seed=2)
    told = json.loads(run(*sides, "--bench", files[0], "--bench", files[1], "--json").stdout)
    (row,) = (one for one in told["changes"] if one["metric"] == "speculation.tpot.mean")
    assert (row["base"]["value"], row["head"]["value"]) == (2_300_000, 4_000_000)
    traps = [one for one in told["warnings"] if one.startswith("The benchmark of ")]
    assert {trap.split(":")[0] for trap in traps} == {"The benchmark of head"}
    once = run(*sides, "--bench", files[0])
    assert isinstance(once.exception, UsageError)
    assert "given 1 time; give it twice" in str(once.exception)


def test_several_captures_a_side_follow_their_option(saved: Any) -> None:
    paths = [saved(f"r{seed}", seed=seed) for seed in range(6)]
    done = run("--base", *paths[:3], "--head", *paths[3:], "--json")
    document = json.loads(done.stdout)
    assert [len(document[side]) for side in ("base", "head")] == [3, 3]
    assert document["confidence"] == "high"


def test_options_after_a_side_end_it() -> None:
    assert spread_sides(["--base", "a", "b", "--json", "--head", "c", "-o", "d"]) == [
        "--base", "a", "--base", "b", "--json", "--head", "c", "-o", "d",
    ]  # fmt: skip
    assert spread_sides(["a", "b", "-q"]) == ["a", "b", "-q"]


def test_files_are_written_by_suffix(saved: Any, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("d.html", "d.md", "d.txt", "d.diff.json")]
    options = [part for path in files for part in ("-o", path)]
    base, head = saved("base"), saved("head", seed=3)
    assert run(base, head, *options, "-q").stdout == ""
    assert all(path.stat().st_size > 100 for path in files)


def test_the_history_stands_in_for_more_captures(saved: Any, tmp_path: Path) -> None:
    with open_store(tmp_path / "h.sqlite", create=True) as database:
        for seed in range(10, 25):
            add(database, a_report(host_late=3 * MS, seed=seed))
    base, head = saved("base", host_late=3 * MS, seed=7), saved("head", host_late=3_600_000, seed=8)
    assert run(base, head).exit_code == 0
    informed = run(base, head, "--history", tmp_path / "h.sqlite")
    assert informed.exit_code == 1
    assert "The spread between captures comes from the history as well." in " ".join(informed.stdout.split())
    other = run(base, head, "--history", tmp_path / "h.sqlite", "--label", "weekly")
    assert other.exit_code == 0
    assert "no run in" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["one"], "give BASE and HEAD"),
        (["--base", "one"], "or --base with --head"),
        (["one", "two", "--floor-gpu", "lots"], "no share"),
        (["one", "two", "--floor-host", "150%"], "not between 0 and 100"),
        (["one", "two", "-f", "pdf"], "no format 'pdf'"),
        (["one", "two", "-o", "x.pdf"], "no format is written"),
        (["one", "two", "--gate", "speed"], "no metric speed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_usage_is_told(saved: Any, arguments: list[str], said: str) -> None:
    names = {"one": saved("one"), "two": saved("two")}
    done = run(*[names.get(argument, argument) for argument in arguments])
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)


@pytest.mark.parametrize(
    ("code", "answer"), [(0, 0), (1, 1), (2, 125), (3, 125), (125, 125), (4, 128), (70, 128)], ids=str
)
def test_git_bisect_is_answered_in_its_own_codes(code: int, answer: int) -> None:
    assert for_bisect(code) == answer


@pytest.mark.parametrize("debug", ["", "1"])
@pytest.mark.parametrize(("bisect", "code"), [(["--bisect"], 128), ([], 4)], ids=["bisect", "by itself"])
def test_a_bug_stops_git_bisect(
    saved: Any, monkeypatch: pytest.MonkeyPatch, bisect: list[str], code: int, debug: str
) -> None:
    def buggy(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    good, same = saved("good"), saved("same", seed=4)
    monkeypatch.setenv("BUBBLEFINDER_DEBUG", debug)
    monkeypatch.setattr("bubblefinder.compare.diff.diff", buggy)
    done = command.run("diff", good, same, *bisect)
    assert done.returncode == code
    assert "error: internal error: ZeroDivisionError: division by zero" in done.stderr
    assert done.stdout == ""
    assert ("Traceback" in done.stderr) == bool(debug)


def test_bisect_says_good_bad_and_skip(saved: Any) -> None:
    good, bad = saved("good"), saved("bad", busy=9 * MS, seed=3)
    assert run(good, saved("same", seed=4), "--bisect").exit_code == 0
    assert run(good, bad, "--bisect").exit_code == 1
    assert run(good, saved("other", mode="graph", intra_graph=None), "--bisect").exit_code == 125


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["missing.json", "missing.json", "--bisect"], 125), (["--nonsense", "--bisect"], 125), (["missing.json"] * 2, 3)],
    ids=["unreadable", "wrong usage", "without it"],
)
def test_errors_are_skipped_commits(arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bubblefinder", "diff", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == code
