from __future__ import annotations

import pytest

from bubblefinder.capture.engines import ENGINES, engine_of
from bubblefinder.rules.functions import functions_trace
from bubblefinder.rules.packs import load_packs


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python -m sglang.launch_server --model-path m", "sglang"),
        ("vllm serve m", "vllm"),
        ("trtllm-serve m", "tensorrt_llm"),
        ("python loop.py", "pytorch"),
    ],
)
def test_an_engine_shows_in_its_command(command: str, name: str) -> None:
    assert engine_of(command.split()).name == name
    assert engine_of(["python"], name).name == name


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("tensorrt-llm", "tensorrt_llm"),
        ("TensorRT-LLM", "tensorrt_llm"),
        ("trtllm", "tensorrt_llm"),
        ("trt-llm", "tensorrt_llm"),
        ("SGLang", "sglang"),
        ("vLLM", "vllm"),
        ("torch", "pytorch"),
    ],
)
def test_an_engine_is_known_by_the_names_that_people_type(typed: str, name: str) -> None:
    assert engine_of(["python"], typed).name == name
    engine = engine_of(["python"], name)
    if name in {"tensorrt_llm", "sglang", "vllm"}:
        assert functions_trace(load_packs(()), [typed]) == functions_trace(load_packs(()), engine.packs[:1])


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_its_packs_list_functions(engine: object) -> None:
    assert functions_trace(load_packs(()), engine.packs)  # type: ignore[attr-defined]
    assert engine.hints  # type: ignore[attr-defined]
