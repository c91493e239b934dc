"""What the step would be after this or that, as people and programs read it."""

from __future__ import annotations

import json as stdlib_json
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.render.kit.sheet import Sheet
from bubblefinder.render.kit.table import Table
from bubblefinder.render.kit.text import PLAIN_WIDTH, prose
from bubblefinder.replay.fixes import WORTHWHILE
from bubblefinder.replay.sentences import BOUNDS, sentence, tokens_per_second
from bubblefinder.report.sentences import plain
from bubblefinder.units import UNKNOWN, duration, printable, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.replay.answer import Answer
    from bubblefinder.replay.predict import Prediction

SCHEMA: Final = "bubblefinder.whatif/1"
NOTHING: Final = "Nothing to fix: no wait drained the GPU, the host is ahead, and every phase of the step is a graph."


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
            {"number": number, "name": fix.name, "text": fix.text, **_prediction(answer, then)}
            for number, (fix, then) in enumerate(answer.fixes, 1)
        ]
        document["order"] = [
            {"number": number, **_prediction(answer, then)} for number, _, then in _numbered_order(answer)
        ]
    return stdlib_json.dumps(document, indent=2, sort_keys=True) + "\n"


def sheet(answer: Answer) -> Sheet:
    """Return what the step takes now, what it would take, and a table of the fixes and of their order."""
    shown = [answer.asked] if answer.asked else [then for _, then in answer.fixes]
    said = sentence(answer.asked) if answer.asked else ("" if answer.fixes else NOTHING)
    return Sheet(
        document="prediction",
        title=f"{plain(answer.name, 80)} · bubblefinder whatif",
        headline=f"{now(answer)}. {said}".strip(),
        verdict=now(answer),
        rest=said,
        warnings=tuple(dict.fromkeys(note for then in shown for note in then.notes)),
        tables=() if answer.asked else tuple(table for table in (_fixes(answer), _order(answer)) if table.rows),
    )


def records(answer: Answer) -> list[dict[str, object]]:
    """Return one record a fix, or one for what was asked for."""
    named = [("asked", answer.asked)] if answer.asked else [(fix.name, then) for fix, then in answer.fixes]
    return [
        {
            "fix": name,
            "now_ns": then.now_ns,
            "step_ns": then.step_ns,
            "low_ns": then.low_ns,
            "high_ns": then.high_ns,
            "recoverable_ns": then.recoverable_ns,
            "bound": then.bound.value,
        }
        for name, then in named
    ]


def now(answer: Answer) -> str:
    """Return what the step takes now."""
    step, speed = duration(answer.now.now_ns), answer.host_speed
    head = f"A decode step on GPU {answer.rank.gpu}, process {answer.rank.pid}, takes {step}"
    when = f" on a host {speed:.3g} times as fast as recorded, as the untraced step shows it" if speed else " now"
    doubt = (
        f", of which up to {duration(answer.profilers_ns)} may be the profiler's own time"
        if answer.profilers_ns
        else ""
    )
    return head + when + _tokens(answer, answer.now.now_ns) + doubt


def _asked(answer: Answer, then: Prediction) -> Iterator[str]:
    yield sentence(then)
    if answer.accept_length:
        yield f"That is {tokens_per_second(then.step_ns, answer.accept_length):.0f} tokens/s."
    yield from (f"note: {printable(note)}" for note in then.notes)


def _overview(answer: Answer) -> Iterator[str]:
    if not answer.fixes:
        yield NOTHING
        return
    yield "\nEvery fix by itself:"
    for number, (fix, then) in enumerate(answer.fixes, 1):
        yield f"  {number}  {printable(fix.name, 80)} ({printable(fix.text, 120)})"
        yield f"     {sentence(then)}"
        yield from (f"     note: {printable(note)}" for note in then.notes)
    yield "\nThe order that pays most:"
    yield from _ordered(answer)


def _ordered(answer: Answer) -> Iterator[str]:
    before = answer.now.now_ns
    for number, stage in enumerate(answer.order, 1):
        gain = before - stage.then.step_ns
        yield (
            f"  {number}. {printable(stage.fix.name, 80)}: {duration(before)} to {duration(stage.then.step_ns)}, "
            f"{duration(gain)} ({share(gain / before)}) less{_tokens(answer, stage.then.step_ns)}"
        )
        before = stage.then.step_ns
    if left := _left(answer):
        yield f"  {left}"
    if answer.order:
        yield f"  Then {BOUNDS[answer.order[-1].then.bound]}."


def _left(answer: Answer) -> str:
    if len(answer.order) == len(answer.fixes):
        return ""
    return f"{'nothing else gains' if answer.order else 'no fix gains'} more than {share(WORTHWHILE)} of the step"


def _tokens(answer: Answer, step_ns: int) -> str:
    return f", {tokens_per_second(step_ns, answer.accept_length):.0f} tokens/s" if answer.accept_length else ""


def _fixes(answer: Answer) -> Table:
    rows = [
        (str(number), f"{plain(fix.name, 80)} ({plain(fix.text, 120)})", *_cells(then, then.now_ns))
        for number, (fix, then) in enumerate(answer.fixes, 1)
    ]
    return Table("Every fix by itself", ("number", "fix", "step then", "range", "gain", "bound by"), rows)


def _order(answer: Answer) -> Table:
    before, rows = answer.now.now_ns, list[tuple[str, ...]]()
    for number, name, then in _numbered_order(answer):
        rows.append((str(number), plain(name, 80), *_cells(then, before)))
        before = then.step_ns
    header = ("number", "fix, on top of those above", "step then", "range", "gain", "bound by")
    return Table("The order that pays most", header, rows, _left(answer))


def _cells(then: Prediction, before_ns: int) -> tuple[str, str, str, str]:
    gain = before_ns - then.step_ns
    reach = f"{duration(then.low_ns)} to {duration(then.high_ns)}"
    ratio = share(gain / before_ns) if before_ns else UNKNOWN
    return duration(then.step_ns), reach, f"{duration(gain)} ({ratio})", then.bound.value


def _numbered_order(answer: Answer) -> list[tuple[int, str, Prediction]]:
    numbers = {fix: number for number, (fix, _) in enumerate(answer.fixes, 1)}
    return [(numbers[stage.fix], stage.fix.name, stage.then) for stage in answer.order]


def _prediction(answer: Answer, then: Prediction) -> dict[str, Any]:
    length = answer.accept_length
    return {
        "step_ns": then.step_ns,
        "range_ns": [then.low_ns, then.high_ns],
        "recoverable_ns": then.recoverable_ns,
        "bound": then.bound.value,
        "tokens_per_second": tokens_per_second(then.step_ns, length) if length else None,
        "notes": list(then.notes),
        "sentence": sentence(then),
    }
