"""How many bytes each part of a decode step has to move, at least.

Weights count once for each pass over the model, however many tokens the pass carries; of the experts those that are
expected to be distinct. Activations, norms, embeddings rows, a linear attention's state and what one rank sends another
are left out: all of it only adds, so what is counted stays a floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubblefinder.economics.shape import BITS

if TYPE_CHECKING:
    from bubblefinder.economics.shape import Attention, Dtype, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How the model runs.

    Attributes:
        ranks: tensor-parallel ranks that share the weights.
        context: tokens of context a request has.
        batch: requests in a step.
        draft_steps: draft passes before a verify pass; 0 without speculation.
        draft_tokens: positions a request has in a verify pass.
    """

    ranks: int = 1
    context: int = 0
    batch: int = 1
    draft_steps: int = 0
    draft_tokens: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that one role moves in a step, by part, and the arithmetic done with them.

    Attributes:
        role: verify, draft, draft-extend or decode.
        passes: passes over its layers.
        tokens: positions in a pass, all requests together.
        parts: bytes by part: experts, shared_experts, gate, dense, attention, head, kv.
        flops: multiplications and additions with the weights.
        spared: bytes of experts that aren't read if all tokens of a pass choose the same ones.
    """

    role: str
    passes: int
    tokens: int
    parts: dict[str, float]
    flops: float
    spared: float = 0.0

    @property
    def total(self) -> float:
        """Bytes of all parts."""
        return sum(self.parts.values())

    @property
    def intensity(self) -> float | None:
        """Floating point operations a byte; null where nothing moves."""
        return self.flops / self.total if self.total else None


def distinct_experts(count: int, top: int, tokens: int) -> float:
    """Return how many different experts tokens that choose at random use: E (1 - (1 - top / E) ** tokens)."""
    return count * (1.0 - (1.0 - top / count) ** tokens)


def step_traffic(shape: Shape, load: Load) -> tuple[Traffic, ...]:
    """Return what each role of a step moves on one rank: decode, or draft, verify and draft-extend."""
    if not load.draft_steps or shape.speculative is None:
        return (_target(shape, load, "decode", load.batch),)
    tokens = load.batch * load.draft_tokens
    passes = load.draft_steps - (1 if shape.speculative.extend_gives_first else 0)
    return (
        _draft(shape, load, "draft", passes, load.batch, head=True),
        _target(shape, load, "verify", tokens),
        _draft(shape, load, "draft-extend", 1, tokens, head=shape.speculative.extend_reads_head),
    )


def _target(shape: Shape, load: Load, role: str, tokens: int) -> Traffic:
    moe_layers = shape.experts.layers if shape.experts else 0
    parts = _feed_forward(shape, load, moe_layers, tokens)
    parts["dense"] = _size(shape.dense_parameters, shape.dtype.weights) / load.ranks
    parts["attention"] = _size(shape.attention_parameters, shape.dtype.weights) / load.ranks
    parts["head"] = _head(shape, load)
    parts["kv"] = load.batch * load.context * sum(_kv(shape, part, load) * part.layers for part in shape.attention)
    active = shape.feed_forward_parameters + shape.attention_parameters + shape.vocabulary * shape.hidden
    flops = 2.0 * active * tokens / load.ranks
    spared = _spared(shape, parts, tokens)
    return Traffic(role=role, passes=1, tokens=tokens, parts=parts, flops=flops, spared=spared)


def _draft(shape: Shape, load: Load, role: str, passes: int, tokens: int, *, head: bool) -> Traffic:
    """Return what passes over the speculative layers move; each is a layer of the target's kind, experts and all."""
    draft = shape.speculative
    assert draft is not None  # noqa: S101 - the caller asks only then
    kind = next(part for part in shape.attention if part.kind == draft.kind)
    attention = kind.parameters if kind.parameters is not None else shape.attention_parameters / shape.layers
    a_pass = _feed_forward(shape, load, draft.layers if shape.experts else 0, tokens)
    a_pass["attention"] = _size(draft.layers * attention, shape.dtype.weights) / load.ranks
    a_pass["head"] = _head(shape, load) if head else 0.0
    a_pass["kv"] = load.batch * load.context * _kv(shape, kind, load) * draft.layers
    active = draft.layers * (attention + shape.routed_layer_parameters) + (
        shape.vocabulary * shape.hidden if head else 0
    )
    parts = {name: size * passes for name, size in a_pass.items()}
    flops = 2.0 * active * tokens * passes / load.ranks
    spared = _spared(shape, parts, tokens)
    return Traffic(role=role, passes=passes, tokens=tokens, parts=parts, flops=flops, spared=spared)


def _spared(shape: Shape, parts: dict[str, float], tokens: int) -> float:
    """Return how much fewer bytes of experts move if all tokens of a pass choose the same ones."""
    if shape.experts is None or not tokens:
        return 0.0
    used = distinct_experts(shape.experts.count, shape.experts.top, tokens)
    return parts["experts"] * (1.0 - shape.experts.top / used)


def _feed_forward(shape: Shape, load: Load, layers: int, tokens: int) -> dict[str, float]:
    moe = shape.experts
    if moe is None or not layers:
        return {"experts": 0.0, "shared_experts": 0.0, "gate": 0.0}
    one = moe.matrices * shape.hidden * moe.width
    shared = moe.shared * moe.matrices * shape.hidden * (moe.shared_width or moe.width)
    used = distinct_experts(moe.count, moe.top, tokens)
    return {
        "experts": _size(layers * used * one, shape.dtype.weights) / load.ranks,
        "shared_experts": _size(layers * shared, shape.dtype.weights) / load.ranks,
        "gate": _size(layers * moe.count * shape.hidden, shape.dtype.gate),
    }


def _head(shape: Shape, load: Load) -> float:
    return _size(shape.vocabulary * shape.hidden, shape.dtype.head) / load.ranks


def _kv(shape: Shape, part: Attention, load: Load) -> float:
    size = _size(part.kv_values, shape.dtype.kv)
    return size if part.kv_shared else size / load.ranks


def _size(values: float, dtype: Dtype) -> float:
    return values * BITS[dtype] / 8
