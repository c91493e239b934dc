"""Writes report/1 of every sample, and says field by field what differs from another tree's. See README.md."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import report_of
from bubblefinder.report.json import encode
from bubblefinder.trace.open import open_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = Path(__file__).parents[1] / "sample_traces"


def write(folder: Path) -> None:
    """Write the report on every sample, under its name."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted([*SAMPLES.rglob("*.sqlite.xz"), *SAMPLES.glob("*_*dir")]):
        name = str(path.relative_to(SAMPLES)).replace("/", "_")
        (folder / f"{name}.json").write_bytes(encode(report_of(Analysis(open_trace(path)))))


def differences(before: Any, after: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield each field that differs, as its place without positions in lists, and what it was and is."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            yield from differences(before.get(name), after.get(name), f"{place}.{name}".lstrip("."))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from differences(one, other, f"{place}[]")
    elif before != after:
        yield place, before, after


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes()) if path.exists() else None


def compare(before: Path, after: Path) -> int:
    """Print each field that differs in any sample, in how many, with an example; return how many fields there are."""
    found: dict[str, dict[str, tuple[Any, Any]]] = defaultdict(dict)
    names = sorted({path.name for folder in (before, after) for path in folder.glob("*.json")})
    for name in names:
        for place, was, now in differences(_read(before / name), _read(after / name)):
            found[place].setdefault(name, (was, now))
    for place, samples in sorted(found.items()):
        name, (was, now) = next(iter(samples.items()))
        print(f"{place}: {len(samples)} of {len(names)} samples; {name}: {str(was)[:60]} -> {str(now)[:60]}")
    touched = {name for samples in found.values() for name in samples}
    print(f"{len(found)} fields differ in {len(touched)} of {len(names)} samples")
    return len(found)


def main() -> int:
    """Write the answers of this tree, and fail if they differ from those given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--against", type=Path, help="the folder that another tree wrote")
    arguments = parser.parse_args()
    write(arguments.folder)
    return int(bool(arguments.against and compare(arguments.against, arguments.folder)))


if __name__ == "__main__":
    raise SystemExit(main())
