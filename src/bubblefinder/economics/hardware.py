"""What GPUs can do at best: memory bandwidth, and the arithmetic at which it stops being the limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from bubblefinder.errors import CannotAnswerError
from bubblefinder.rules.shipped import shipped
from bubblefinder.rules.suggest import Strict, load

_Positive = Annotated[float, Field(gt=0)]


class Gpu(Strict):
    """One kind of GPU: figures with their source."""

    name: str
    bandwidth: _Positive = Field(description="bytes a second, nominal")
    bf16_flops: _Positive = Field(description="dense bf16 products, FLOP a second")
    achievable: float | None = Field(default=None, gt=0, le=1, description="share of the bandwidth that a copy reached")
    source: str


class Gpus(Strict):
    """The file of all of them."""

    gpu: tuple[Gpu, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """The memory bandwidth that a floor is held against.

    Attributes:
        bytes_per_second: nominal.
        source: ``given``, ``capture`` or ``datasheet``.
        achievable: share of it that a plain copy reached on such a GPU; null where not measured.
        ridge: FLOP a byte from which bf16 products, not memory, would bound the work; null where not known.
    """

    bytes_per_second: float
    source: Literal["given", "capture", "datasheet"]
    achievable: float | None = None
    ridge: float | None = None


def bandwidth_of(name: str | None, recorded: int | None, given: float | None = None) -> Bandwidth:
    """Return a GPU's bandwidth: the one given, else the one the capture states, else the datasheet's.

    Args:
        name: the GPU's name in the capture.
        recorded: bytes a second that the capture states.
        given: bytes a second that the user states.

    Raises:
        CannotAnswerError: none is known.
    """
    known = next((gpu for gpu in _known() if name and gpu.name.casefold() in name.casefold()), None)
    flops, achievable = (known.bf16_flops, known.achievable) if known else (None, None)
    if given:
        best, source = given, "given"
    elif recorded:
        best, source = float(recorded), "capture"
    elif known:
        best, source = known.bandwidth, "datasheet"
    else:
        raise CannotAnswerError(
            f"the memory bandwidth of {name or 'this GPU'} is not known", hint="give it with --bandwidth, in GB/s"
        )
    ridge = flops / best if flops else None
    return Bandwidth(bytes_per_second=best, source=source, achievable=achievable, ridge=ridge)  # type: ignore[arg-type]


def _known() -> tuple[Gpu, ...]:
    path = shipped() / "hardware" / "gpus.toml"
    return load(Gpus, path).gpu
