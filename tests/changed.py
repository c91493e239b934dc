"""Prints the tests of what has changed since the last commit that everybody has: ``python -m tests.changed``.

A change in `src/bubblefinder/PACKAGE` calls for `tests/unit/PACKAGE` and for what is demanded of registries; a changed
test for itself.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALWAYS = ("tests/test_house.py", "tests/test_registries.py")
SLOW = ("tests/e2e", "tests/fuzz", "tests/integration")


def called_for(changed: list[str]) -> list[str]:
    """Return the tests, as pytest takes them, of changed files; those that need minutes or a browser stay out."""
    found = set(ALWAYS)
    for name in changed:
        parts = Path(name).parts
        if parts[:2] == ("src", "bubblefinder"):
            package = parts[2] if len(parts) > 3 else f"test_{parts[2]}"
            found.add(f"tests/unit/{package}")
        elif parts[0] == "tests" and parts[-1].startswith("test_") and not name.startswith(SLOW):
            found.add(name)
        elif parts[0] == "rules" or parts[:2] == ("tests", "cases"):
            found |= {f"tests/{one.name}" for one in (ROOT / "tests").glob("test_rule_*.py")}
        elif parts[0] == "docs":
            found |= {f"tests/{one.name}" for one in (ROOT / "tests").glob("test_*.py") if one.name != "test_readme.py"}
    there = sorted(name for name in found if (ROOT / name).exists())
    return [name for name in there if not any(Path(name).is_relative_to(one) for one in there if one != name)]


def changed() -> list[str]:
    """Return the files that differ from the upstream branch, or from the last commit where there is none."""
    upstream = _git("merge-base", "HEAD", "@{upstream}") or ["HEAD"]
    return sorted({*_git("diff", "--name-only", upstream[0]), *_git("ls-files", "--others", "--exclude-standard")})


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}\n" for name in called_for(changed()))
