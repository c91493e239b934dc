"""The promises the project makes about itself."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.changed import called_for
from tests.processes import run

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PUBLIC_HOSTS = {"pypi.org", "files.pythonhosted.org"}


def lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    start = (first.end_lineno or first.lineno) if documented else node.lineno
    return (node.end_lineno or node.lineno) - start


HELP = """
import sys
from bubblefinder.cli.app import main
sys.argv = ["bubblefinder", "--help"]
try:
    main()
except SystemExit as stop:
    print(*sys.modules, file=sys.stderr)
    raise
"""


@pytest.fixture(scope="module")
def imported_for_help() -> list[str]:
    done = run([sys.executable, "-c", HELP], check=True)
    assert "analyze" in done.stdout
    return done.stderr.split()


@pytest.mark.parametrize("library", ["numpy", "pandas", "plotly", "polars", "starlette"])
def test_help_starts_without_heavy_libraries(imported_for_help: list[str], library: str) -> None:
    assert "bubblefinder.cli.app" in imported_for_help
    assert library not in imported_for_help


def test_files_and_functions_stay_short() -> None:
    assert len(SOURCES) > 100
    texts = {source: source.read_text() for source in SOURCES}
    assert [str(source) for source, text in texts.items() if text.count("\n") > 400] == []
    functions = [
        (str(source), node)
        for source, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [(source, function.name) for source, function in functions if lines(function) > 50] == []


def test_unit_tests_mirror_the_sources() -> None:
    strays = []
    for test in sorted((ROOT / "tests" / "unit").rglob("test_*.py")):
        module = test.relative_to(ROOT / "tests" / "unit").with_name(test.name.removeprefix("test_"))
        places = (module, module.with_suffix("") / "__init__.py")
        strays += [] if any((ROOT / "src" / "bubblefinder" / path).exists() for path in places) else [test]
    assert strays == []


def test_a_change_calls_for_the_tests_of_its_package() -> None:
    always = ["tests/test_house.py", "tests/test_registries.py"]
    assert called_for(["src/bubblefinder/steps/find.py", "tests/unit/steps/test_find.py"]) == [
        *always,
        "tests/unit/steps",
    ]
    assert "tests/unit/test_units.py" in called_for(["src/bubblefinder/units.py"])
    assert "tests/test_rule_cases.py" in called_for(["rules/core.toml"])
    assert called_for(["tests/e2e/test_report_page.py", "uv.lock", "src/bubblefinder/gone/away.py"]) == always


def test_the_tests_of_what_changed_are_printed() -> None:
    printed = run([sys.executable, "-m", "tests.changed"], cwd=ROOT, check=True)
    assert "tests/test_house.py" in printed.stdout.splitlines()


def test_the_check_of_a_change_runs_what_the_readme_says() -> None:
    told = re.findall(r"`(make [a-z]+)` runs every check", (ROOT / "README.md").read_text())
    assert told
    assert set(told) <= set((ROOT / ".ci" / "run").read_text().splitlines())


def test_the_lock_names_only_public_hosts() -> None:
    lock = (ROOT / "uv.lock").read_text()
    sources = [package["source"] for package in tomllib.loads(lock)["package"]]
    assert set(re.findall(r"https?://([^/\"]+)", lock)) == PUBLIC_HOSTS
    assert [s for s in sources if s not in ({"registry": "https://pypi.org/simple"}, {"editable": "."})] == []


def test_the_wheel_carries_its_data(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    run([*command, "--wheel-dir", tmp_path, ROOT], check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        packed = set(wheel.namelist())
    source = ROOT / "src"
    ours = {str(p.relative_to(source)) for p in source.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    packs = {f"bubblefinder/_packs/{path.name}" for path in (ROOT / "rules").glob("*.toml")}
    assert ours | packs <= packed
    assert any(name.endswith("licenses/LICENSE") for name in packed)


def test_what_works_on_reports_alone_starts_without_polars() -> None:
    modules = ["web.server", "compare.source", "compare.diff", "compare.judge", "compare.history", "compare.trend"]
    modules += ["render.report.text", "render.report.html", "render.report.markdown", "render.diff.html"]
    script = f"import sys, {', '.join(f'bubblefinder.{one}' for one in modules)}; print('polars' in sys.modules)"
    assert run([sys.executable, "-c", script], check=True).stdout == "False\n"
