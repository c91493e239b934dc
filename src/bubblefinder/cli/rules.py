"""``bubblefinder rules``: list the rules, explain one, check a pack, run the cases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bubblefinder.errors import EXIT_GATE, UsageError
from bubblefinder.units import plural

if TYPE_CHECKING:
    from bubblefinder.rules.config import Config
    from bubblefinder.rules.packs import Packs

rules = typer.Typer(no_args_is_help=True, help="List, explain, check and test the rules that name causes.")

Folders = Annotated[
    list[Path] | None,
    typer.Option("--rules", metavar="DIR", help="A folder with your own rule packs. May be repeated."),
]


@rules.command("list")
def list_rules(folders: Folders = None) -> None:
    """List the rules that run here. Shows id, name, what it is about, how far it is proven, its title."""
    from bubblefinder.render.kit.sheet import Table
    from bubblefinder.render.kit.text import draw, page_width
    from bubblefinder.rules.engine import selected
    from bubblefinder.rules.packs import load_packs
    from bubblefinder.rules.template import bare

    config = _config(folders)
    chosen = selected(load_packs(config.rules), config)
    rows = [(rule.id, rule.name, rule.about, rule.status, bare(rule.title)) for rule in chosen]
    header = ("id", "name", "about", "status", "title")
    typer.echo(draw(Table("Rules", header, rows, left=header), page_width()))


@rules.command()
def explain(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="A rule's id or name, such as SGL001.")],
    folders: Folders = None,
) -> None:
    """Say what a rule finds, when it fires and what to do about it."""
    from rich.console import Console
    from rich.markdown import Markdown

    from bubblefinder.rules.explain import page
    from bubblefinder.rules.suggest import did_you_mean

    packs = _packs(folders)
    known = {word: (pack, entry) for pack in packs.packs for entry in pack.rule for word in (entry.id, entry.name)}
    if rule not in known:
        # Names of rules and codes of quality notes look alike: words with hyphens.
        notes = "; codes of quality notes are explained in docs/quality.md" if "-" in rule else ""
        raise UsageError(f"no rule {rule!r}{did_you_mean(rule, known)}", hint=f"see: bubblefinder rules list{notes}")
    text = page(*known[rule])
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        typer.echo(text, nl=False)


@rules.command()
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Rule packs, or folders of them.")],
) -> None:
    """Check rule packs and say everything that is wrong with them."""
    from bubblefinder.rules.model import Pack
    from bubblefinder.rules.packs import read_pack
    from bubblefinder.rules.suggest import FileError

    found = _files(files)
    if not found:
        raise UsageError(
            f"{', '.join(map(str, files))}: no rule packs here",
            hint="name a rule pack, or a folder with *.toml rule packs",
        )
    mistakes = list[FileError]()
    for path in found:
        try:
            pack = read_pack(path)
        except FileError as error:
            mistakes.append(error)
        else:
            holds = plural(len(pack.rule), "rule") if isinstance(pack, Pack) else "kernel categories"
            typer.echo(f"{path}: {holds}, no mistakes")
    if mistakes:
        raise FileError("\n".join(map(str, mistakes)), hint=mistakes[0].hint)


@rules.command("test")
def run_cases(
    cases: Annotated[list[Path] | None, typer.Argument(metavar="CASES", help="Case files, or folders of them.")] = None,
    folders: Folders = None,
) -> None:
    """Run the drawn cases of rules: all, or those named. Exit 1 if a rule doesn't do what they say, or has none."""
    from bubblefinder.rules.cases import complaints, read_cases, untested
    from bubblefinder.rules.packs import load_packs, own_rules

    files = [read_cases(path) for path in _files(cases or [Path("tests/cases")])]
    own = _config(folders).rules
    packs = load_packs(own)
    wrong = [line for file in files for case in file.case for line in complaints(file.rule, case, packs)]
    if not cases or folders:
        wrong += [f"{rule}: no case" for rule in untested(own_rules(own), files)]
    for line in wrong:
        typer.echo(line)
    if wrong:
        raise typer.Exit(EXIT_GATE)
    count = plural(sum(len(file.case) for file in files), "case")
    typer.echo(f"{count} of {plural(len(files), 'rule')}: all as they should be")


@rules.command()
def functions(
    wanted: Annotated[
        list[str] | None, typer.Argument(metavar="PACK[==VERSION]", help="Packs, such as sglang==0.5.17; all if none.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write them; else printed.")
    ] = None,
    folders: Folders = None,
) -> None:
    """Write the functions that rules know. They name a stock engine's code under Nsight Systems.

    Capture with: nsys profile --python-functions-trace=FILE ...
    """
    from bubblefinder.render.formats import write_whole
    from bubblefinder.rules.functions import functions_file

    text = functions_file(_packs(folders), wanted or ())
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_whole(output, text.encode())


def _files(paths: list[Path]) -> list[Path]:
    """Return the files, and the TOML files in the folders."""
    return [file for path in paths for file in (sorted(path.glob("*.toml")) if path.is_dir() else [path])]


def _packs(folders: list[Path] | None) -> Packs:
    from bubblefinder.rules.packs import load_packs

    return load_packs(_config(folders).rules)


def _config(folders: list[Path] | None) -> Config:
    """Return the settings that hold in this folder, as `analyze` takes them, with the folders given."""
    from bubblefinder.rules.config import find_config, load_config

    return load_config(find_config(Path.cwd())).override(rules=folders or ())
