"""The shape of a model: what a decode step has to read of it, as data that people can write themselves."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from bubblefinder.rules.suggest import Strict

Dtype = Literal["fp32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"]
BITS: Final[dict[Dtype, int]] = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "fp4": 4, "int4": 4}

_Count = Annotated[int, Field(ge=0)]
_Positive = Annotated[int, Field(gt=0)]
_Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Attention(Strict):
    """A kind of token mixer and how many layers have it."""

    kind: _Line = Field(description="what the layers do: kda, mla, gqa, mha")
    layers: _Positive = Field(description="how many layers of the target model have it")
    parameters: _Count | None = Field(
        default=None, description="weights of its projections, a layer; left out: what `active_parameters` leaves"
    )
    kv_values: _Count = Field(default=0, description="values kept for each token of context, a layer; 0: none")
    kv_shared: bool = Field(
        default=False, description="whether every rank keeps all of them (MLA's latent) instead of its heads' share"
    )


class Experts(Strict):
    """The feed-forward layers that route each token to a few experts."""

    layers: _Positive = Field(description="how many layers of the target model route")
    count: _Positive = Field(description="experts a layer")
    top: _Positive = Field(description="experts a token is sent to")
    width: _Positive = Field(description="inner width of one expert")
    shared: _Count = Field(default=0, description="experts that every token uses besides")
    shared_width: _Positive | None = Field(default=None, description="their width; left out: as the others")
    matrices: _Positive = Field(default=3, description="matrices an expert: gate, up and down")


class Dense(Strict):
    """The feed-forward layers without experts."""

    layers: _Positive = Field(description="how many layers of the target model are dense")
    width: _Positive = Field(description="inner width")
    matrices: _Positive = Field(default=3, description="gate, up and down")


class Speculative(Strict):
    """The draft: layers of the target's own kind behind its last one (NEXTN, MTP)."""

    layers: _Positive = Field(description="layers a draft pass goes through")
    kind: _Line = Field(description="the kind of token mixer they have, one of the target's")
    extend_gives_first: bool = Field(
        default=True,
        description="whether the draft-extend pass gives the first draft token, so that the draft makes one pass fewer",
    )
    extend_reads_head: bool = Field(default=True, description="whether the draft-extend pass reads the LM head")


class Dtypes(Strict):
    """How wide each part is stored."""

    weights: Dtype
    head: Dtype = Field(description="the LM head")
    gate: Dtype = Field(description="the router's gate")
    kv: Dtype = Field(default="bf16", description="the KV cache")


class Shape(Strict):
    """A model as far as the bytes of a decode step depend on it."""

    name: _Line
    source: _Line = Field(description="where the figures are from")
    hidden: _Positive
    vocabulary: _Positive
    active_parameters: _Positive | None = Field(
        default=None, description="published weights a token uses, LM head and embedding not counted"
    )
    attention: tuple[Attention, ...] = Field(min_length=1)
    experts: Experts | None = None
    dense: Dense | None = None
    speculative: Speculative | None = None
    dtype: Dtypes

    @model_validator(mode="after")
    def _whole(self) -> Self:
        total = self.layers
        routed = (self.experts.layers if self.experts else 0) + (self.dense.layers if self.dense else 0)
        if routed > total:
            raise ValueError(f"{routed} feed-forward layers in a model of {total} layers")
        if self.experts and self.experts.top > self.experts.count:
            raise ValueError("experts.top is larger than experts.count")
        unknown = [part.kind for part in self.attention if part.parameters is None]
        if unknown and self.active_parameters is None:
            raise ValueError(f"attention {unknown[0]}: give parameters, or active_parameters for the whole model")
        if self.speculative and self.speculative.kind not in {part.kind for part in self.attention}:
            raise ValueError(f"speculative.kind {self.speculative.kind} is no kind of attention here")
        if self.active_parameters is not None and self.attention_parameters < 0:
            raise ValueError("the experts and dense layers alone have more than active_parameters")
        return self

    @property
    def layers(self) -> int:
        """Layers of the target model."""
        return sum(part.layers for part in self.attention)

    @property
    def routed_layer_parameters(self) -> int:
        """Weights of one layer's experts, shared experts and gate that one token uses."""
        moe = self.experts
        if moe is None:
            return 0
        shared = moe.shared * moe.matrices * self.hidden * (moe.shared_width or moe.width)
        return moe.top * moe.matrices * self.hidden * moe.width + shared + moe.count * self.hidden

    @property
    def dense_parameters(self) -> int:
        """Weights of all dense feed-forward layers."""
        return self.dense.layers * self.dense.matrices * self.hidden * self.dense.width if self.dense else 0

    @property
    def feed_forward_parameters(self) -> int:
        """Weights of experts, shared experts, gates and dense layers that one token uses."""
        return self.dense_parameters + (self.experts.layers * self.routed_layer_parameters if self.experts else 0)

    @property
    def attention_parameters(self) -> int:
        """Weights of all projections of the target's token mixers.

        Where a kind states none, what the published active parameters leave after the feed-forward layers.
        """
        stated = [part.layers * part.parameters for part in self.attention if part.parameters is not None]
        if len(stated) == len(self.attention) or self.active_parameters is None:
            return sum(stated)
        return self.active_parameters - self.feed_forward_parameters
