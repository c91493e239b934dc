"""Every error has its exit code."""

from __future__ import annotations

import pytest

from bubblefinder import errors
from bubblefinder.errors import DEBUG, EXIT_INPUT, EXIT_INTERNAL, InputError, InternalError, bugs_told


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.UsageError, 2),
        (errors.InputError, 3),
        (errors.NotATraceError, 3),
        (errors.CannotAnswerError, 3),
        (errors.InternalError, 4),
    ],
)
def test_exit_codes(kind: type[errors.BubblefinderError], code: int) -> None:
    error = kind("what is wrong", hint="what to do")
    assert (error.exit_code, str(error), error.hint) == (code, "what is wrong", "what to do")


def test_a_bug_becomes_an_error_that_says_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEBUG, raising=False)
    with pytest.raises(InternalError, match="internal error: KeyError: 'x'") as told, bugs_told():
        raise KeyError("x")
    assert told.value.exit_code == EXIT_INTERNAL
    assert DEBUG in told.value.hint


def test_a_bug_shows_its_traceback_where_it_is_looked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(DEBUG, "1")
    with pytest.raises(InternalError, match="internal error: KeyError: 'x'"), bugs_told():
        raise KeyError("x")
    told = capsys.readouterr().err
    assert told.startswith("Traceback (most recent call last):")
    assert told.endswith("KeyError: 'x'\n")


def test_memory_that_ran_out_is_told_with_a_way_out() -> None:
    with pytest.raises(InternalError, match="out of memory") as told, bugs_told():
        raise MemoryError
    assert "--window" in told.value.hint


def test_an_error_of_the_tree_passes_as_it_is() -> None:
    with pytest.raises(InputError) as told, bugs_told():
        raise InputError("no such file")
    assert told.value.exit_code == EXIT_INPUT
