"""The recipe `nsys recipe bubblefinder --input DIR`, run by Nsight Systems' own framework.

Nsight Systems finds a recipe as a folder with `metadata.json` and the module that it names; its name is the folder's.
So both lie in this package's own folder, and NSYS_RECIPE_PATH names the folder that holds the package.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_recipe.lib import recipe
from nsys_recipe.lib.args import Option

from bubblefinder.fleet.analyse import Analysed, analyse, side_by_side
from bubblefinder.fleet.find import export_beside
from bubblefinder.render.formats import write
from bubblefinder.report.json import decode

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTEBOOK = "analysis.ipynb"


class Bubblefinder(recipe.Recipe):  # type: ignore[misc]
    """Analyses every report, through the export beside it or one that nsys makes."""

    @staticmethod
    def _mapper_func(report_path: str, parsed_args: Any) -> Analysed:  # noqa: ANN401, ARG004 - the framework's shape
        return analyse(str(export_beside(Path(report_path)) or report_path))

    def mapper_func(self, context: Any) -> list[Analysed]:  # noqa: ANN401 - the framework's own
        """Return what each report gives, as the context's mode runs it: here, on processes or on dask."""
        mapped = context.map(self._mapper_func, self._parsed_args.input, parsed_args=self._parsed_args)
        found: list[Analysed] = list(context.wait(mapped))
        return found

    def reducer_func(self, done: Iterable[Analysed]) -> None:
        """Write the frame of all ranks, a report for each capture, and the table of the fleet."""
        results = list(done)
        fleet = side_by_side(results)
        write("fleet", fleet, Path(self.add_output_file("analysis.parquet", "Parquet")))
        write("fleet", fleet, Path(self.add_output_file("fleet.html", "Html")))
        for one in results:
            if one.report:
                name = f"{Path(one.path).name.split('.sqlite')[0]}.html"
                write("report", decode(one.report), Path(self.add_output_file(name, "Html")))

    def run(self, context: Any) -> None:  # noqa: ANN401 - the framework's own
        """Map, reduce, and leave the notebook and the analysis file that Nsight Systems opens."""
        super().run(context)
        self.reducer_func(self.mapper_func(context))
        self.create_notebook(NOTEBOOK)
        ended = {
            "EndTime": str(datetime.now(UTC)),
            "InputFiles": self._parsed_args.input,
            "Outputs": self._output_files,
        }
        self._analysis_dict.update(ended)
        self.create_analysis_file()

    @classmethod
    def get_argument_parser(cls) -> Any:  # noqa: ANN401 - the framework's own
        """Return the parser with input and output, as recipes have them."""
        parser = super().get_argument_parser()
        parser.add_recipe_argument(Option.INPUT, required=True)
        parser.add_recipe_argument(Option.OUTPUT)
        parser.add_recipe_argument(Option.FORCE_OVERWRITE)
        return parser
