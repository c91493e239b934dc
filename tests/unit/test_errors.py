"""Every error has its exit code."""

from __future__ import annotations

import pytest

from bubblefinder import errors


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
