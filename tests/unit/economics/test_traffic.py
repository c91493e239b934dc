from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.economics.shape import BITS
from bubblefinder.economics.shapes import load_shape
from bubblefinder.economics.traffic import Load, distinct_experts, step_traffic

if TYPE_CHECKING:
    from bubblefinder.economics.shape import Dtype, Shape

GB = 1e9


def size(values: float, dtype: Dtype) -> float:
    return values * BITS[dtype] / 8


def kv_bytes_a_token(shape: Shape) -> float:
    """What the target's caches hold for one token of context, over all ranks' heads."""
    return sum(size(part.layers * part.kv_values, shape.dtype.kv) for part in shape.attention)


def plain_bytes(shape: Shape, context: int = 0) -> float:
    """A plain decode step of one request on one rank by the published active parameters; none of it rounded up."""
    if shape.active_parameters is None:
        raise ValueError(f"{shape.name} states no active parameters")
    head = size(shape.vocabulary * shape.hidden, shape.dtype.head)
    return size(shape.active_parameters, shape.dtype.weights) + head + context * kv_bytes_a_token(shape)


def test_four_tokens_of_top_eight_use_31_of_512_experts() -> None:
    assert distinct_experts(512, 8, 4) == pytest.approx(31.3, abs=0.05)


@given(count=st.integers(1, 1000), top=st.integers(1, 64), tokens=st.integers(1, 200))
def test_distinct_experts_lie_between_one_token_s_and_all(count: int, top: int, tokens: int) -> None:
    top = min(top, count)
    used = distinct_experts(count, top, tokens)
    assert top * (1 - 1e-9) <= used <= min(count, top * tokens) * (1 + 1e-9)
    assert used <= distinct_experts(count, top, tokens + 1) * (1 + 1e-9)


def test_four_bit_weights_and_a_bf16_head_move_3_355_gb() -> None:
    shape = load_shape("ling-3.0-flash-w4a8")
    head = shape.vocabulary * shape.hidden * 2
    assert head == pytest.approx(0.805 * GB, rel=1e-3)
    assert plain_bytes(shape) - head == pytest.approx(2.55 * GB)
    assert plain_bytes(shape) == pytest.approx(3.355 * GB, rel=1e-3)
    assert plain_bytes(load_shape("ling-3.0-flash-w4a8-fp8-head")) == pytest.approx(2.952 * GB, rel=1e-3)


def test_the_baseline_of_27_71_ms_is_44_percent_of_273_gb_a_second() -> None:
    effective = plain_bytes(load_shape("ling-3.0-flash-w4a8")) / 27.71e-3
    assert effective == pytest.approx(121 * GB, rel=5e-3)
    assert effective / 273e9 == pytest.approx(0.44, abs=0.005)


@pytest.mark.parametrize(("context", "megabytes", "part"), [(32_000, 258, 0.077), (32_768, 264, 0.079)])
def test_the_kv_cache_of_a_long_context(context: int, megabytes: float, part: float) -> None:
    shape = load_shape("ling-3.0-flash-w4a8")
    assert kv_bytes_a_token(shape) == 8064
    cache = context * kv_bytes_a_token(shape)
    assert cache == pytest.approx(megabytes * 1e6, rel=2e-3)
    assert cache / plain_bytes(shape) == pytest.approx(part, abs=5e-4)
    assert plain_bytes(shape, context) == plain_bytes(shape) + cache


def test_shapes_without_published_parameters_have_no_plain_bytes() -> None:
    with pytest.raises(ValueError, match="active parameters"):
        plain_bytes(load_shape("sample-loop"))


def test_a_plain_step_counts_every_part_of_the_published_parameters() -> None:
    shape = load_shape("ling-3.0-flash-fp8")
    (decode,) = step_traffic(shape, Load())
    gates = 40 * 512 * 2560
    assert decode.total == pytest.approx(plain_bytes(shape) + 3 * gates)  # gates stay in fp32: three bytes more each


def test_ranks_share_all_but_gates_and_the_latent_cache() -> None:
    shape = load_shape("ling-3.0-flash")
    (alone,), (shared,) = (step_traffic(shape, Load(ranks=ranks, context=1000)) for ranks in (1, 4))
    for name, size in alone.parts.items():
        divided = 1 if name in ("gate", "kv") else 4
        assert shared.parts[name] * divided == pytest.approx(size), name


def test_a_speculative_step_drafts_verifies_and_extends() -> None:
    load = Load(draft_steps=5, draft_tokens=6)
    draft, verify, extend = step_traffic(load_shape("ling-3.0-flash"), load)
    assert [part.role for part in (draft, verify, extend)] == ["draft", "verify", "draft-extend"]
    assert (draft.passes, draft.tokens, verify.tokens, extend.passes) == (4, 1, 6, 1)
    assert draft.parts["head"] == 4 * verify.parts["head"]


def test_the_loop_drafts_in_every_pass_and_extends_without_a_head() -> None:
    draft, _, extend = step_traffic(load_shape("sample-loop"), Load(draft_steps=3, draft_tokens=4))
    assert draft.passes == 3
    assert extend.parts["head"] == 0


@given(tokens=st.integers(1, 64), batch=st.integers(1, 64), context=st.integers(0, 100_000))
def test_more_work_never_moves_fewer_bytes(tokens: int, batch: int, context: int) -> None:
    shape = load_shape("ling-3.0-flash")

    def moved(load: Load) -> float:
        return sum(traffic.total for traffic in step_traffic(shape, load))

    small = Load(draft_steps=1, draft_tokens=tokens, batch=batch, context=context)
    for larger in ({"batch": batch + 1}, {"context": context + 1}, {"draft_tokens": tokens + 1}):
        keys = {"draft_steps": 1, "draft_tokens": tokens, "batch": batch, "context": context} | larger
        assert moved(Load(**keys)) >= moved(small) * (1 - 1e-12)


def test_what_is_spared_if_all_tokens_choose_alike_leaves_one_token_s_experts() -> None:
    shape = load_shape("sample-loop")
    _, verify, _ = step_traffic(shape, Load(draft_steps=3, draft_tokens=4))
    assert verify.parts["experts"] - verify.spared == pytest.approx(42 * 8 * 3 * 2560 * 192 * 2)
