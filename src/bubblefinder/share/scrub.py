"""Takes out of the texts of a capture what tells of people, machines and programs, and leaves names of code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from bubblefinder.trace.quality import PATH, telling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

FACTS: Final = re.compile(
    r"NvDriverVersion|CudaDriverVersion|EXPORT_(?:PRODUCT_(?:NAME|VERSION)|SCHEMA_VERSION\w*|CONFIG_TIME_SHIFT)"
    r"|EXPORT_PARAM_(?:LAZY|TIME_NORMALIZE|TIME_SHIFT)|CUDA_GRAPH_TRACE_OPTIONS:MODE"
)
"""What a capture says of its making that is safe to tell; the value must look like one as well."""

THREADS: Final = re.compile(
    r"python[\d.]*|pt_\w+|cuda[-\w]*|sglang::\w*|VLLM::\w*|ZMQbg/[\w/]+|\[NSys[ \w]*\]|CUPTI worker thread"
)
"""Names of threads that a library or a serving engine gave, not a user."""

NEUTRAL_SERIAL: Final = re.compile(r"GPU-\d{1,4}")
"""What stands in place of a serial."""

_VERSION: Final = re.compile(r"-?[\d.]{1,40}(?:-\d{1,12}v\d)?|true|false|graph|node|NVIDIA Nsight Systems")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}|nvtx|draft-extend")
_MODEL: Final = re.compile(r"(?:NVIDIA|Tesla|Quadro|GeForce|Orin|Thor)[ \w()-]{0,60}|G[A-Z]\d\w{2,5}")
_MARKS: Final = (
    (re.compile(r"\w+://\S+"), "<address>"),
    (re.compile(r"[\w.+-]+@[\w-]+\.\S+"), "<address>"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b|\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"), "<address>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b(?:hf|sk|gh[opsu]|xox[abp]|glpat|nvapi)[-_][\w-]{8,}"), "<secret>"),
    (PATH, "<path>"),
    (re.compile(r"\b\w*[A-Z]\w*=(?!\d+\b)\S+"), "<setting>"),
)
_SHORTEST: Final = 3
_EVERYWHERE: Final = frozenset({"root", "user", "localhost", "home", "nvidia", "ubuntu"})


class Scrubber:
    """Cleans texts of one capture, each by its kind."""

    def __init__(self, personal: Iterable[str]) -> None:
        """Remember the words that name its user and its machine."""
        words = {word for word in personal if len(word) >= _SHORTEST and word.lower() not in _EVERYWHERE}
        listed = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
        self._personal = re.compile(rf"(?<!\w)(?:{listed})(?!\w)", re.IGNORECASE) if listed else None
        self._serials: dict[str, str] = {}
        self._kinds: dict[str, Callable[[str], str]] = {
            "text": self.text,
            "code": code,
            "thread": lambda text: text if THREADS.fullmatch(text) else "",
            # What the profiler says of its records; what else it says tells of programs and machines.
            "diagnostic": lambda text: self.text(telling(text) or ""),
            "serial": lambda text: self._serials.setdefault(text, f"GPU-{len(self._serials)}"),
            "word": lambda text: text if _WORD.fullmatch(text) else "",
            "model": lambda text: text if _MODEL.fullmatch(text) else "",
            "fact": lambda text: text if FACTS.fullmatch(text) else "",
            "version": lambda text: text if _VERSION.fullmatch(text) else "",
        }

    def clean(self, kind: str, value: object) -> str | None:
        """Return a stored text as it may be shared, empty if nothing of it may; null for what is no text."""
        return self._kinds[kind](value) if isinstance(value, str) else None

    def text(self, text: str) -> str:
        """Return what a program said of itself, without paths, addresses, settings, secrets and personal words."""
        for pattern, instead in _MARKS:
            text = pattern.sub(instead, text)
        return self._personal.sub("<name>", text) if self._personal else text


def code(text: str) -> str:
    """Return the name of a kernel, a function or an API call without paths."""
    return PATH.sub("<path>", text)
