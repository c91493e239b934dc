from __future__ import annotations

import pytest

from bubblefinder.errors import EXIT_INPUT, BubblefinderError
from bubblefinder.web.limits import RefusedError, size


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KiB"),
        (5 << 20, "5.0 MiB"),
        (8 << 30, "8.0 GiB"),
        (9 << 40, "9,216.0 GiB"),
    ],
)
def test_sizes_are_said_in_words(number: int, shown: str) -> None:
    assert size(number) == shown


def test_a_refusal_is_one_of_the_programs_errors() -> None:
    refused = RefusedError(413, "too long", hint="cut it")
    assert isinstance(refused, BubblefinderError)
    assert (str(refused), refused.hint, refused.status, refused.exit_code) == ("too long", "cut it", 413, EXIT_INPUT)
