from __future__ import annotations

import pytest

from bubblefinder.web.guesses import BURST, PAUSE_S, Guesses
from bubblefinder.web.limits import RefusedError


def test_an_address_that_guesses_waits_and_others_do_not() -> None:
    now = [0.0]
    guesses = Guesses(lambda: now[0])
    for _ in range(BURST):
        guesses.check("a")
        guesses.wrong("a")
    with pytest.raises(RefusedError, match="wrong tokens") as refused:
        guesses.check("a")
    assert refused.value.status == 429
    guesses.check("b")
    now[0] = PAUSE_S + 0.1
    guesses.check("a")
    guesses.wrong("a")
    with pytest.raises(RefusedError):
        guesses.check("a")
    now[0] = 1e6
    for _ in range(BURST):
        guesses.check("a")
        guesses.wrong("a")


def test_what_is_remembered_of_guesses_is_bounded() -> None:
    guesses = Guesses()
    for number in range(10_100):
        guesses.wrong(str(number))
    assert len(guesses._debts) <= 10_000


def test_an_address_gets_few_places_to_sign_in() -> None:
    guesses = Guesses()
    held = [guesses.signing_in("a") for _ in range(4)]
    for one in held:
        one.__enter__()
    with pytest.raises(RefusedError, match="at once"), guesses.signing_in("a"):
        pass
    with guesses.signing_in("b"):
        pass
    for one in held:
        one.__exit__(None, None, None)
    with guesses.signing_in("a"):
        pass
    assert guesses._signing_in == {}
