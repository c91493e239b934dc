"""The one exception tree. Every error names what to do next and the exit code it maps to."""

from __future__ import annotations

EXIT_OK = 0
EXIT_GATE = 1
EXIT_USAGE = 2
EXIT_INPUT = 3
EXIT_INTERNAL = 4

DEBUG = "BUBBLEFINDER_DEBUG"
"""The environment variable with which a bug shows its traceback."""

BISECT_SKIP = 125
BISECT_ABORT = 128


def for_bisect(code: int) -> int:
    """Return what `git bisect run` understands: good and bad as they are, skip for what can't be told, else abort."""
    if code in {EXIT_OK, EXIT_GATE, BISECT_SKIP}:
        return code
    return BISECT_SKIP if code in {EXIT_USAGE, EXIT_INPUT} else BISECT_ABORT


class BubblefinderError(Exception):
    """Base of every error a user can see.

    Args:
        message: one line that says what is wrong.
        hint: one line that says what to do next, or an empty string.
    """

    exit_code = EXIT_INTERNAL

    def __init__(self, message: str, *, hint: str = "") -> None:
        """Keep the message as the exception's text and the hint beside it."""
        super().__init__(message)
        self.hint = hint


class UsageError(BubblefinderError):
    """The command line, a budget, a rule pack or a configuration file is wrong (exit 2)."""

    exit_code = EXIT_USAGE


class InputError(BubblefinderError):
    """The input can't be read, or can't answer the question (exit 3)."""

    exit_code = EXIT_INPUT


class NotATraceError(InputError):
    """The path holds no Nsight Systems export, or one that is damaged."""


class CannotAnswerError(InputError):
    """The export is readable but doesn't hold what the question needs."""


class InternalError(BubblefinderError):
    """A law of the product was broken, such as a ledger that doesn't sum (exit 4)."""
