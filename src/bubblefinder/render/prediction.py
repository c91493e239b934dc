"""What `bubblefinder whatif` prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.replay.fixes import best_order
from bubblefinder.replay.predict import predict
from bubblefinder.replay.sentences import BOUNDS, sentence, tokens_per_second
from bubblefinder.units import duration, printable, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.replay.fixes import Fix
    from bubblefinder.replay.predict import Prediction
    from bubblefinder.replay.study import Study
    from bubblefinder.timeline.rank import Rank

SCHEMA: Final = "bubblefinder.whatif/1"


def as_text(study: Study, rank: Rank, asked: Prediction | None, accept_length: float | None) -> str:
    """Return the answer in words: the prediction that was asked for, else the fixes and their order."""
    now = predict(study.model, [])[rank]
    head = f"A decode step on GPU {rank.gpu}, process {rank.pid}, takes {duration(now.now_ns)} now"
    lines = [f"{head}{_tokens(now.now_ns, accept_length)}."]
    if asked:
        lines += _asked(asked, accept_length)
    else:
        lines += _overview(study, rank, accept_length)
    return "\n".join(lines)


def _asked(then: Prediction, accept_length: float | None) -> Iterator[str]:
    yield sentence(then)
    if accept_length:
        yield f"That is {tokens_per_second(then.step_ns, accept_length):.0f} tokens/s."
    yield from (f"note: {printable(note)}" for note in then.notes)


def _overview(study: Study, rank: Rank, accept_length: float | None) -> Iterator[str]:
    if not study.fixes:
        yield "Nothing to fix: no wait drained the GPU, the host is ahead, and every phase of the step is a graph."
        return
    yield "\nEvery fix by itself:"
    for number, fix in enumerate(study.fixes, 1):
        then = predict(study.model, [fix.change])[rank]
        yield f"  {number}  {printable(fix.name, 80)} ({printable(fix.text, 120)})"
        yield f"     {sentence(then)}"
        yield from (f"     note: {printable(note)}" for note in then.notes)
    yield "\nThe order that pays most:"
    yield from _order(study, rank, accept_length)


def _order(study: Study, rank: Rank, accept_length: float | None) -> Iterator[str]:
    stages = best_order(study.model, study.fixes, rank)
    before = predict(study.model, [])[rank].now_ns
    for number, stage in enumerate(stages, 1):
        gain = before - stage.then.step_ns
        yield (
            f"  {number}. {printable(stage.fix.name, 80)}: {duration(before)} to {duration(stage.then.step_ns)}, "
            f"{duration(gain)} ({share(gain / before)}) less{_tokens(stage.then.step_ns, accept_length)}"
        )
        before = stage.then.step_ns
    if len(stages) < len(study.fixes):
        yield f"  {'nothing else gains' if stages else 'no fix gains'} more than {share(0.001)} of the step"
    if stages:
        yield f"  Then {BOUNDS[stages[-1].then.bound]}."


def _tokens(step_ns: int, accept_length: float | None) -> str:
    return f", {tokens_per_second(step_ns, accept_length):.0f} tokens/s" if accept_length else ""


def as_document(study: Study, rank: Rank, asked: Prediction | None, accept_length: float | None) -> str:
    """Return the answer as JSON: `now`, then `asked`, or `fixes` and `order`."""
    now = predict(study.model, [])[rank]
    document: dict[str, Any] = {"schema": SCHEMA, "gpu": rank.gpu, "pid": rank.pid, "step_ns": now.now_ns}
    if asked:
        document["asked"] = _prediction(asked, accept_length)
    else:
        numbers = {fix: number for number, fix in enumerate(study.fixes, 1)}
        document["fixes"] = [_fix(study, rank, fix, number, accept_length) for fix, number in numbers.items()]
        document["order"] = [
            {"number": numbers[stage.fix], **_prediction(stage.then, accept_length)}
            for stage in best_order(study.model, study.fixes, rank)
        ]
    return json.dumps(document, indent=2, sort_keys=True)


def _fix(study: Study, rank: Rank, fix: Fix, number: int, accept_length: float | None) -> dict[str, Any]:
    then = predict(study.model, [fix.change])[rank]
    return {"number": number, "name": fix.name, "text": fix.text, **_prediction(then, accept_length)}


def _prediction(then: Prediction, accept_length: float | None) -> dict[str, Any]:
    tokens = tokens_per_second(then.step_ns, accept_length) if accept_length else None
    return {
        "step_ns": then.step_ns,
        "range_ns": [then.low_ns, then.high_ns],
        "recoverable_ns": then.recoverable_ns,
        "bound": then.bound.value,
        "tokens_per_second": tokens,
        "notes": list(then.notes),
        "sentence": sentence(then),
    }
