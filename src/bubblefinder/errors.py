"""The one exception tree. Every error names what to do next and the exit code it maps to."""

from __future__ import annotations

import os
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@contextmanager
def bugs_told() -> Iterator[None]:
    """Make a bug, or memory that ran out, an error of the tree; with BUBBLEFINDER_DEBUG set a bug shows its traceback.

    It does not end the program itself: Python's exit code for that is 1, which says that a gate failed.

    Raises:
        InternalError: something else went wrong inside than an error of the tree or a closed pipe.
    """
    try:
        yield
    except (BubblefinderError, BrokenPipeError):
        raise
    except MemoryError as error:
        raise InternalError("out of memory", hint="analyse a part of the capture with --window") from error
    except Exception as error:
        if os.environ.get(DEBUG):
            traceback.print_exception(error)
        raise InternalError(
            f"internal error: {type(error).__name__}: {error}",
            hint=f"{DEBUG}=1 shows where; please report it with the output of `bubblefinder doctor`",
        ) from error
