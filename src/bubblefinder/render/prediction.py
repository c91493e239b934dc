"""What the step would be after this or that, as people and programs read it."""

from __future__ import annotations

import json as stdlib_json
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.render.kit.sheet import Sheet, Table
from bubblefinder.render.kit.text import PLAIN_WIDTH, prose
from bubblefinder.replay.fixes import WORTHWHILE
from bubblefinder.replay.sentences import BOUNDS, doubt_words, sentence, tokens_per_second
from bubblefinder.report.prediction_sentences import between, between_words
from bubblefinder.report.sentences import plain
from bubblefinder.units import UNKNOWN, duration, printable, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.replay.answer import Answer
    from bubblefinder.replay.doubt import Estimate

SCHEMA: Final = "bubblefinder.whatif/1"
_TEXT: Final = 300
"""Letters of what a fix is: room for the names of a chain's waits."""
_APART: Final = (
    "A step's range is with or without what may be the profiler's own time, a gain's is of the fix alone: "
    "neither is the step now less the other."
)


def text(answer: Answer, width: int | None = None) -> str:
    """Return the answer in words: the prediction that was asked for, else the fixes and their order."""
    lines = [f"{now(answer)}.", *(_asked(answer, answer.asked) if answer.asked else _overview(answer))]
    shown = width or PLAIN_WIDTH
    return "\n".join(prose(line, shown, " " * 5 if line.startswith(" ") else "") for line in lines) + "\n"


def json(answer: Answer) -> str:
    """Return the answer as JSON: `now`, then `asked`, or `fixes` and `order`."""
    rank = answer.rank
    document: dict[str, Any] = {"schema": SCHEMA, "gpu": rank.gpu, "pid": rank.pid, "step_ns": answer.now.now_ns}
    document["profilers_ns"] = answer.profilers_ns
    document["host_speed"] = answer.host_speed
    if answer.asked:
        document["asked"] = _prediction(answer, answer.asked)
    else:
        document["fixes"] = [
            {"number": number, "name": fix.name, "text": fix.text, **_prediction(answer, gives)}
            for number, (fix, gives) in enumerate(answer.fixes, 1)
        ]
        document["order"] = [
            {"number": number, **_prediction(answer, gives)} for number, _, gives in _numbered_order(answer)
        ]
    return stdlib_json.dumps(document, indent=2, sort_keys=True) + "\n"


def sheet(answer: Answer) -> Sheet:
    """Return what the step takes now, what it would take, and a table of the fixes and of their order."""
    shown = [answer.asked] if answer.asked else [gives for _, gives in answer.fixes]
    said = _asked_words(answer, answer.asked) if answer.asked else ("" if answer.fixes else _nothing(answer))
    return Sheet(
        document="prediction",
        title=f"{plain(answer.name, 80)} · bubblefinder whatif",
        headline=f"{now(answer)}. {said}".strip(),
        verdict=now(answer),
        rest=said,
        warnings=(*_withheld(answer), *dict.fromkeys(note for gives in shown for note in gives.then.notes)),
        tables=() if answer.asked else tuple(table for table in (_fixes(answer), _order(answer)) if table.rows),
    )


def records(answer: Answer) -> list[dict[str, object]]:
    """Return one record a fix, or one for what was asked for; what has a range alone has no value."""
    named = (
        [(None, "asked", None, answer.asked)]
        if answer.asked
        else [(number, fix.name, fix.text, gives) for number, (fix, gives) in enumerate(answer.fixes, 1)]
    )
    return [
        {
            "number": number,
            "fix": name,
            "text": what,
            "now_ns": gives.then.now_ns,
            "step_ns": gives.value.step_ns if gives.value else None,
            "low_ns": gives.step_range_ns[0],
            "high_ns": gives.step_range_ns[1],
            "recoverable_ns": gives.value.recoverable_ns if gives.value else None,
            "recoverable_low_ns": gives.gain_range_ns[0],
            "recoverable_high_ns": gives.gain_range_ns[1],
            "bound": gives.value.bound.value if gives.value else None,
        }
        for number, name, what, gives in named
    ]


def now(answer: Answer) -> str:
    """Return what the step takes now."""
    step, speed = duration(answer.now.now_ns), answer.host_speed
    head = f"A decode step on GPU {answer.rank.gpu}, process {answer.rank.pid}, takes {step}"
    when = " now" if speed is None else " without the profiler, as measured"
    when += f", on a host {speed:.3g} times as fast as recorded" if speed not in (None, 1.0) else ""
    tokens = f", {_rate(answer.now.now_ns, answer.accept_length)} tokens/s" if answer.accept_length else ""
    doubt = (
        f", of which up to {duration(answer.profilers_ns)} may be the profiler's own time"
        if answer.profilers_ns
        else ""
    )
    return head + when + tokens + doubt


def _nothing(answer: Answer) -> str:
    """Return why there is no fix: each kind of fix, and what of it there is none of."""
    phases = "every phase of the step is a graph"
    if (single := round(answer.single_kernels)) == 1:
        phases = "one kernel a step, launched by itself, is too little to become a graph"
    elif single:
        phases = f"the {single} kernels a step that are launched one by one are too few in a row to become a graph"
    return f"Nothing to fix: no wait drained the GPU, the host is ahead, and {phases}."


def _withheld(answer: Answer) -> Iterator[str]:
    """Yield why there is no value, where the step now doesn't say it."""
    if answer.profilers_ns is None and any(gives.value is None for _, gives in (*answer.fixes, *answer.order)):
        yield f"Where there is a range alone, {doubt_words(None)}."


def _asked(answer: Answer, gives: Estimate) -> Iterator[str]:
    yield _asked_words(answer, gives)
    yield from (f"note: {printable(note)}" for note in gives.then.notes)


def _asked_words(answer: Answer, gives: Estimate) -> str:
    tokens = _tokens(answer, gives)
    return sentence(gives) + (f" That is {tokens}." if tokens else "")


def _overview(answer: Answer) -> Iterator[str]:
    if not answer.fixes:
        yield _nothing(answer)
        return
    yield from _withheld(answer)
    yield "\nEvery fix by itself:"
    for number, (fix, gives) in enumerate(answer.fixes, 1):
        yield f"  {number}  {printable(fix.name, 80)} ({printable(fix.text, _TEXT)})"
        yield f"     {sentence(gives, why=False)}"
        yield from (f"     note: {printable(note)}" for note in gives.then.notes)
    yield "\nThe order that pays most:"
    yield from _ordered(answer)


def _ordered(answer: Answer) -> Iterator[str]:
    before, last = answer.now.now_ns, None
    for number, (fix, gives) in enumerate(answer.order, 1):
        last, tokens = gives.value, _tokens(answer, gives)
        yield f"  {number}. {printable(fix.name, 80)}: {_stage(before, number, gives)}{tokens and f', {tokens}'}"
        before = last.step_ns if last else before
    if left := _left(answer):
        yield f"  {left}"
    if last:
        yield f"  Then {BOUNDS[last.bound]}."


def _stage(before_ns: int, number: int, gives: Estimate) -> str:
    """Return what a fix gives on top of those above it; where there is a range alone, what it gives with them."""
    then = gives.value
    if then is None:
        return f"{'with those above, ' if number > 1 else ''}{between(gives.gain_range_ns)} less"
    gain = before_ns - then.step_ns
    step = duration(then.step_ns) + between_words(gives.step_range_ns)
    return f"{duration(before_ns)} to {step}, {duration(gain)} ({share(gain / before_ns)}) less"


def _left(answer: Answer) -> str:
    if len(answer.order) == len(answer.fixes):
        return ""
    return f"{'nothing else gains' if answer.order else 'no fix gains'} more than {share(WORTHWHILE)} of the step"


def _tokens(answer: Answer, gives: Estimate) -> str:
    """Return the tokens a second that a step then means; a range where there is no value; empty if unknown."""
    length = answer.accept_length
    if not length:
        return ""
    if gives.value:
        return f"{_rate(gives.value.step_ns, length)} tokens/s"
    low, high = gives.step_range_ns
    least = _rate(high, length)
    return f"{least} to {_rate(low, length)} tokens/s" if low else f"{least} tokens/s or more"


def _rate(step_ns: int, accept_length: float) -> str:
    return f"{tokens_per_second(step_ns, accept_length):.0f}"


def _fixes(answer: Answer) -> Table:
    rows = [
        (str(number), f"{plain(fix.name, 80)} ({plain(fix.text, _TEXT)})", *_cells(gives, gives.then.now_ns, 1))
        for number, (fix, gives) in enumerate(answer.fixes, 1)
    ]
    header = ("number", "fix", "step then", "range", "gain", "bound by")
    return Table("Every fix by itself", header, rows, _APART if answer.profilers_ns else "", left=("fix", "bound by"))


def _order(answer: Answer) -> Table:
    before, rows = answer.now.now_ns, list[tuple[str, ...]]()
    for place, (number, name, gives) in enumerate(_numbered_order(answer), 1):
        rows.append((str(number), plain(name, 80), *_cells(gives, before, place)))
        before = gives.value.step_ns if gives.value else before
    header = ("number", "fix, on top of those above", "step then", "range", "gain", "bound by")
    return Table("The order that pays most", header, rows, _left(answer), left=(header[1], "bound by"))


def _cells(gives: Estimate, before_ns: int, place: int) -> tuple[str, str, str, str]:
    low, high = (duration(end) for end in gives.step_range_ns)
    then = gives.value
    if then is None:
        least, most = (duration(end) for end in gives.gain_range_ns)
        return UNKNOWN, f"{low} to {high}", f"{least} to {most}{' with those above' if place > 1 else ''}", UNKNOWN
    gain = before_ns - then.step_ns
    ratio = share(gain / before_ns) if before_ns else UNKNOWN
    return duration(then.step_ns), f"{low} to {high}", f"{duration(gain)} ({ratio})", then.bound.value


def _numbered_order(answer: Answer) -> list[tuple[int, str, Estimate]]:
    numbers = {fix: number for number, (fix, _) in enumerate(answer.fixes, 1)}
    return [(numbers[fix], fix.name, gives) for fix, gives in answer.order]


def _prediction(answer: Answer, gives: Estimate) -> dict[str, Any]:
    then, length = gives.value, answer.accept_length
    return {
        "step_ns": then.step_ns if then else None,
        "range_ns": list(gives.step_range_ns),
        "recoverable_ns": then.recoverable_ns if then else None,
        "recoverable_range_ns": list(gives.gain_range_ns),
        "bound": then.bound.value if then else None,
        "tokens_per_second": tokens_per_second(then.step_ns, length) if then and length else None,
        "notes": list(gives.then.notes),
        "sentence": sentence(gives),
    }
