"""A model's shape from its Hugging Face config.json: the Ling, DeepSeek, Qwen and GLM families, and what is alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from bubblefinder.economics.shape import Attention, Dense, Dtype, Dtypes, Experts, Shape, Speculative
from bubblefinder.errors import UsageError
from bubblefinder.rules.suggest import load_json

if TYPE_CHECKING:
    from pathlib import Path

_TORCH: Final[dict[str, Dtype]] = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
_QUANTISED: Final[dict[tuple[str, int], Dtype]] = {
    ("fp8", 8): "fp8", ("awq", 4): "int4", ("gptq", 4): "int4", ("gptq", 8): "int8",
}  # fmt: skip
_HINT: Final = "write a shape file (.toml) for it; `rules/models` has examples"


class Config(BaseModel):
    """What a shape needs of a config; the families' names for one thing are aliases of one field."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    model_type: str
    hidden_size: int = Field(gt=0)
    intermediate_size: int = Field(default=0, ge=0)
    num_hidden_layers: int = Field(gt=0)
    vocab_size: int = Field(gt=0)
    num_attention_heads: int = Field(gt=0)
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0
    experts: int = Field(default=0, validation_alias=AliasChoices("num_experts", "n_routed_experts"))
    top: int = Field(default=0, validation_alias=AliasChoices("num_experts_per_tok", "num_experts_per_token"))
    shared: int | None = Field(default=None, validation_alias=AliasChoices("num_shared_experts", "n_shared_experts"))
    moe_intermediate_size: int = 0
    shared_width: int | None = Field(
        default=None,
        validation_alias=AliasChoices("moe_shared_expert_intermediate_size", "shared_expert_intermediate_size"),
    )
    first_k_dense_replace: int = 0
    decoder_sparse_step: int = 1
    mlp_only_layers: tuple[int, ...] = ()
    router_dtype: str = ""
    num_nextn_predict_layers: int = 0
    layer_types: tuple[str, ...] = ()
    full_attention_interval: int = 0
    linear_num_key_heads: int = 0
    linear_num_value_heads: int = 0
    linear_key_head_dim: int = 0
    linear_value_head_dim: int = 0
    dtype: str = Field(default="bfloat16", validation_alias=AliasChoices("torch_dtype", "dtype"))
    quantization_config: dict[str, Any] | None = None


def read_config(path: Path) -> Shape:
    """Return the shape that a config.json states.

    Raises:
        UsageError: the file is no such config, or describes layers whose weights this can't count.
    """
    config = load_json(Config, path, hint="name a Hugging Face config.json")
    attention = _attention(config)
    return Shape(
        name=config.model_type,
        source=f"config.json of {config.model_type}",
        hidden=config.hidden_size,
        vocabulary=config.vocab_size,
        attention=attention,
        experts=_experts(config),
        dense=_dense(config),
        speculative=Speculative(layers=config.num_nextn_predict_layers, kind=attention[-1].kind)
        if config.num_nextn_predict_layers
        else None,
        dtype=_dtypes(config),
    )


def _attention(config: Config) -> tuple[Attention, ...]:
    """Return the kinds of layers, those of full attention last."""
    linear = _linear_layers(config)
    full = _latent(config) if config.kv_lora_rank else _grouped(config)
    kinds = [full.model_copy(update={"layers": config.num_hidden_layers - linear})]
    if linear:
        kinds.insert(0, Attention(kind="linear", layers=linear, parameters=_linear_parameters(config)))
    return tuple(kinds)


def _linear_layers(config: Config) -> int:
    """Return how many layers are linear attention.

    Raises:
        UsageError: some are, but the config doesn't state their heads.
    """
    if config.layer_types:
        linear = sum(kind.startswith("linear") for kind in config.layer_types)
    elif config.full_attention_interval:
        linear = config.num_hidden_layers - config.num_hidden_layers // config.full_attention_interval
    else:
        linear = 0
    if (linear and not config.linear_num_value_heads) or (not linear and "hybrid" in config.model_type):
        raise UsageError(f"the layers of a {config.model_type} can't be told from its config", hint=_HINT)
    return linear


def _linear_parameters(config: Config) -> int:
    """Return the weights of a gated delta net's projections: q, k, v and z in, two gates a value head, and out."""
    keys = config.linear_num_key_heads * config.linear_key_head_dim
    values = config.linear_num_value_heads * config.linear_value_head_dim
    return config.hidden_size * (2 * keys + 3 * values + 2 * config.linear_num_value_heads)


def _latent(config: Config) -> Attention:
    """Return multi-head latent attention: one compressed key and value a token, kept by every rank."""
    heads, rank = config.num_attention_heads, config.kv_lora_rank or 0
    head = config.qk_nope_head_dim + config.qk_rope_head_dim
    queries = heads * head
    direct = config.hidden_size * queries
    query = config.q_lora_rank * (config.hidden_size + queries) if config.q_lora_rank else direct
    down = config.hidden_size * (rank + config.qk_rope_head_dim)
    up = rank * heads * (config.qk_nope_head_dim + config.v_head_dim)
    out = heads * config.v_head_dim * config.hidden_size
    values = rank + config.qk_rope_head_dim
    return Attention(kind="mla", layers=1, parameters=query + down + up + out, kv_values=values, kv_shared=True)


def _grouped(config: Config) -> Attention:
    """Return attention with grouped heads: the queries' and the output's weights, and two a key-value head."""
    heads = config.num_attention_heads
    shared = config.num_key_value_heads or heads
    head = config.head_dim or config.hidden_size // heads
    return Attention(
        kind="gqa" if shared < heads else "mha",
        layers=1,
        parameters=2 * config.hidden_size * head * (heads + shared),
        kv_values=2 * shared * head,
    )


def _routed_layers(config: Config) -> int:
    if not config.experts:
        return 0
    sparse = [
        layer
        for layer in range(config.first_k_dense_replace, config.num_hidden_layers)
        if (layer + 1) % config.decoder_sparse_step == 0 and layer not in config.mlp_only_layers
    ]
    return len(sparse)


def _experts(config: Config) -> Experts | None:
    layers = _routed_layers(config)
    if not layers:
        return None
    shared = config.shared if config.shared is not None else int(bool(config.shared_width))
    return Experts(
        layers=layers,
        count=config.experts,
        top=config.top,
        width=config.moe_intermediate_size,
        shared=shared,
        shared_width=config.shared_width,
    )


def _dense(config: Config) -> Dense | None:
    layers = config.num_hidden_layers - _routed_layers(config)
    return Dense(layers=layers, width=config.intermediate_size) if layers else None


def _dtypes(config: Config) -> Dtypes:
    """Return how wide the parts are stored.

    Raises:
        UsageError: the weights are quantised in a way whose width the config doesn't state plainly.
    """
    stored = _TORCH.get(config.dtype.removeprefix("torch."), "bf16")
    weights = stored
    if config.quantization_config:
        method = str(config.quantization_config.get("quant_method", ""))
        bits = config.quantization_config.get("bits", 8 if method == "fp8" else 0)
        known = _QUANTISED.get((method, bits))
        if known is None:
            raise UsageError(f"how wide {method or 'these'} weights are can't be told from the config", hint=_HINT)
        weights = known
    return Dtypes(weights=weights, head=stored, gate="fp32" if config.router_dtype == "fp32" else stored, kv=stored)
