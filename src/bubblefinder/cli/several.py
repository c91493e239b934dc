"""Several captures in one call of `bubblefinder analyze`: a line each as it is done, then what stands out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from bubblefinder.cli.output import Outputs, stages
from bubblefinder.errors import EXIT_GATE, EXIT_OK
from bubblefinder.units import plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bubblefinder.fleet.analyse import Analysed
    from bubblefinder.report.build import Options


def analyze_several(
    paths: Sequence[Path],
    options: Options,
    failing: Sequence[str],
    outputs: Outputs,
    *,
    quiet: bool,
    verbose: bool,
) -> int:
    """Analyse captures one after the other and put them side by side; return the highest exit code of any.

    Findings of the severities `failing` fail a capture; `verbose` prints the whole report of each with its line.
    """
    from bubblefinder.fleet.analyse import side_by_side
    from bubblefinder.render.fleet import line, sheet
    from bubblefinder.report.json import decode

    done = []
    for one in _analysed(paths, options, quiet=quiet):
        done.append(one)
        outputs.tell(line(one), decode(one.report) if verbose and one.report else None)
    fleet = side_by_side(done)
    outputs.tell(sheet(fleet).headline)
    outputs.emit(fleet)
    gated = [one.path for one in done if not one.severities.isdisjoint(failing)]
    if gated:
        names = ", ".join(printable(path, 200) for path in gated)
        typer.echo(f"{plural(len(gated), 'capture')} with findings that --fail-on is for: {names}", err=True)
    return max(EXIT_GATE if gated else EXIT_OK, *(one.code for one in done))


def _analysed(paths: Sequence[Path], options: Options, *, quiet: bool) -> Iterator[Analysed]:
    from bubblefinder.fleet.analyse import analyse

    for place, path in enumerate(paths, 1):
        with stages(quiet=quiet) as progress:
            progress(f"{path.name} ({place} of {len(paths)})")
            done = analyse(str(path), options)
        yield done
