"""Configs by their published keys; weights are counted by hand from the layers' definitions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.economics.shapes import load_shape
from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.economics.shape import Shape

SMALL: dict[str, Any] = {
    "model_type": "bailing_moe", "hidden_size": 2048, "intermediate_size": 5120, "num_hidden_layers": 20,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 157184, "num_experts": 256,
    "num_experts_per_tok": 8, "num_shared_experts": 1, "moe_intermediate_size": 512, "first_k_dense_replace": 1,
    "moe_shared_expert_intermediate_size": 512, "router_dtype": "fp32", "num_nextn_predict_layers": 1,
    "torch_dtype": "bfloat16",
}  # fmt: skip
LING: dict[str, Any] = {
    "model_type": "bailing_moe", "hidden_size": 4096, "intermediate_size": 9216, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 157184, "num_experts": 64,
    "num_experts_per_tok": 8, "num_shared_experts": 1, "moe_intermediate_size": 1024, "first_k_dense_replace": 1,
    "moe_shared_expert_intermediate_size": 1024, "router_dtype": "fp32", "num_nextn_predict_layers": 1,
    "torch_dtype": "bfloat16",
}  # fmt: skip
DEEPSEEK: dict[str, Any] = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
    "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3, "num_nextn_predict_layers": 1, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}  # fmt: skip
QWEN: dict[str, Any] = {
    "model_type": "qwen3_moe", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 94,
    "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "num_experts": 128,
    "num_experts_per_tok": 8, "moe_intermediate_size": 1536, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "torch_dtype": "bfloat16",
}  # fmt: skip
NEXT: dict[str, Any] = {
    "model_type": "qwen3_next", "hidden_size": 2048, "intermediate_size": 5120, "num_hidden_layers": 48,
    "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 151936, "num_experts": 512,
    "num_experts_per_tok": 10, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
    "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "torch_dtype": "bfloat16",
}  # fmt: skip


def shape_of(tmp_path: Path, config: dict[str, Any]) -> Shape:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    return load_shape(str(path))


def test_ling_has_grouped_heads_and_one_dense_layer(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, LING)
    assert shape.attention_parameters == 32 * (2 * 4096 * 128 * (32 + 4))
    assert shape.attention[0].kv_values == 2 * 4 * 128
    assert shape.experts is not None
    assert shape.dense is not None
    assert (shape.experts.layers, shape.experts.shared, shape.dense.layers, shape.dense.width) == (31, 1, 1, 9216)
    assert (shape.dtype.weights, shape.dtype.gate) == ("bf16", "fp32")
    assert shape.speculative is not None


def test_deepseek_keeps_one_latent_a_token_in_fp8(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, DEEPSEEK)
    (latent,) = shape.attention
    by_hand = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    assert (latent.kind, latent.parameters, latent.kv_values, latent.kv_shared) == ("mla", by_hand, 576, True)
    assert (shape.dtype.weights, shape.dtype.head) == ("fp8", "bf16")
    active = shape.attention_parameters + shape.feed_forward_parameters + 2 * shape.vocabulary * shape.hidden
    assert active / 1e9 == pytest.approx(37, rel=0.03)  # as published


def test_qwen_routes_in_every_layer(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, QWEN)
    assert shape.dense is None
    active = shape.attention_parameters + shape.feed_forward_parameters + 2 * shape.vocabulary * shape.hidden
    assert active / 1e9 == pytest.approx(22, rel=0.03)  # as published: 235B-A22B


def test_three_of_four_layers_of_qwen_next_keep_no_cache(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, NEXT)
    linear, full = shape.attention
    assert (linear.layers, linear.kv_values, full.layers, full.kv_values) == (36, 0, 12, 2 * 2 * 256)
    assert shape.experts is not None
    assert shape.experts.shared == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_type": "bailing_hybrid"}, "can't be told from its config"),
        ({"layer_types": ["linear_attention"] * 32}, "can't be told from its config"),
        ({"quantization_config": {"quant_method": "compressed-tensors"}}, "how wide compressed-tensors weights"),
        ({"hidden_size": "wide"}, "hidden_size"),
    ],
)
def test_what_a_config_doesn_t_say_is_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        shape_of(tmp_path, LING | change)


def test_no_json_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UsageError, match="not JSON"):
        load_shape(str(tmp_path / "config.json"))
    with pytest.raises(UsageError, match="No such file"):
        load_shape(str(tmp_path / "absent.json"))
