"""Where the profiler's part of a step can't be told, no format and no field says what a cure gives but as a range.

That holds for `analyze` and for `whatif`, and both give the same range.
"""

from __future__ import annotations

import html
import io
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pytest

from bubblefinder.errors import CannotAnswerError
from bubblefinder.fleet.model import Fleet, rows_of
from bubblefinder.render.formats import encoded, formats_of, render
from bubblefinder.render.prediction import sheet
from bubblefinder.replay.answer import answer
from bubblefinder.replay.changes import CaptureEager, HostSpeed, RemoveWaits
from tests.samples import FOLDER, analysis, report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.render.formats import Document
    from bubblefinder.replay.answer import Answer
    from bubblefinder.replay.changes import Change
    from bubblefinder.report.model import Report

NAMES: Final = sorted(str(path.relative_to(FOLDER)).removesuffix(".sqlite.xz") for path in FOLDER.rglob("*.sqlite.xz"))
POINTS: Final = frozenset({"recoverable_ns", "in_turn_ns", "step_after_ns", "bound_after"})
"""The fields of report/1 that say what a change gives, or what it leaves, without a range; and what bounds it."""
PREDICTED: Final = frozenset({"step_ns", "recoverable_ns", "bound", "tokens_per_second"})
"""Those of whatif/1, in each prediction."""
GIVES: Final = re.compile(
    r"\b(?:gives?|recover|in its turn|gives it|step then(?: takes)?|(?:then|a step) takes?|back|together:?|alone)"
    r"(?: about| at most)? (\d[\d.,]* (?:ns|us|ms|s)\b)(?! to \d| a step at most)"
)
"""The words behind which a report says a gain, or the step after it, with no range there instead; a bound is none."""
LEAVES: Final = re.compile(
    r"goes from|stays at|bounds the step|(?<!and )(?<![\d.])\d[\d.,]* (?:ns|us|ms|s)(?: \([^)]*\))? less"
)
"""The words of `whatif` for the step after a change, and for a gain that is no range."""
ROWS: Final = frozenset({"json", "csv", "parquet"})
WORDED: Final = {document: sorted(set(formats_of(document)) - ROWS) for document in ("report", "prediction")}


def withheld(told: Report) -> bool:
    return told.overhead.untold_ns is not None


def fields(document: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield every field of a document: the path to what holds it, its name and its value."""
    left = [("", document)]
    while left:
        path, value = left.pop()
        if isinstance(value, dict):
            yield from ((path, name, inner) for name, inner in value.items())
            left += [(f"{path}.{name}", inner) for name, inner in value.items() if isinstance(inner, (dict, list))]
        elif isinstance(value, list):
            left += [(f"{path}[{at}]", inner) for at, inner in enumerate(value) if isinstance(inner, (dict, list))]


def plain(text: str) -> str:
    """Return what a reader sees: without tags and styles, on one line."""
    bare = re.sub(r"(?s)<(style|script)\b.*?</\1>|<[^>]+>", " ", text)
    return " ".join(html.unescape(bare).replace("**", "").split())


def words(document: Document, told: Report | Answer | Fleet, form: str) -> str:
    return plain(encoded(render(document, told, form)).decode())


def frame(document: Document, told: Report | Answer | Fleet, form: str) -> pl.DataFrame:
    """Return the rows of a format that is made of rows."""
    content = encoded(render(document, told, form))
    if form == "csv":
        return pl.read_csv(io.BytesIO(content), infer_schema_length=None) if content else pl.DataFrame()
    return pl.read_parquet(io.BytesIO(content))


@cache
def answers(name: str) -> dict[str, Answer]:
    """Return what `whatif` says of the reported rank: of every fix, of all waits, and of a faster host."""
    try:
        study = analysis(name).study
    except CannotAnswerError:
        return {}
    steps = report(name).steps
    (rank,) = [one for one in study.ranks if (one.gpu, one.pid) == (steps.gpu, steps.pid)]
    waits: list[Change] = [fix.change for fix in study.fixes if isinstance(fix.change, RemoveWaits)]
    asked: dict[str, list[Change]] = {
        "": [],
        "waits": waits,
        "host": [HostSpeed(2.0)],
        "both": [*waits, HostSpeed(2.0)],
    }
    return {which: answer(study, rank, changes, accept_length=3.0) for which, changes in asked.items()}


@pytest.mark.parametrize("name", NAMES)
def test_no_field_has_a_value_where_there_is_a_range_alone(name: str) -> None:
    told = report(name)
    document = json.loads(render("report", told, "json"))
    points = {f"{path}.{field}" for path, field, value in fields(document) if field in POINTS and value is not None}
    if not withheld(told):
        ranged = [finding for finding in told.findings if finding.recoverable_ns is not None]
        assert all(finding.recoverable_range_ns for finding in ranged)
        return
    assert not points
    assert told.joint is None
    assert document["joint"] is None


@pytest.mark.parametrize("name", NAMES)
def test_no_format_says_a_value_where_there_is_a_range_alone(name: str) -> None:
    told = report(name)
    for form in WORDED["report"] if withheld(told) else ():
        assert (form, GIVES.findall(words("report", told, form))) == (form, [])
    for form in ("csv", "parquet"):
        assert POINTS.isdisjoint(frame("report", told, form).columns), form


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_rows_of_captures_side_by_side_have_a_range_beside_each_value_and_none_where_it_is_withheld(
    form: str,
) -> None:
    told = Fleet(tuple(row for name in NAMES for row in rows_of(report(name), FOLDER / name, None)))
    rows = frame("fleet", told, form).filter(pl.col("first").is_not_null())
    untold = rows["path"].is_in([str(FOLDER / name) for name in NAMES if withheld(report(name))])
    assert rows.filter(untold)["recoverable_ns"].null_count() == untold.sum()
    assert rows.filter(untold)["recoverable_high_ns"].count() > 0
    priced = rows.drop_nulls("recoverable_ns")
    assert len(priced) > 10
    assert (priced["recoverable_low_ns"] <= priced["recoverable_ns"]).all()
    assert (priced["recoverable_ns"] <= priced["recoverable_high_ns"]).all()


@pytest.mark.parametrize("name", NAMES)
def test_no_field_of_whatif_has_a_value_where_there_is_a_range_alone(name: str) -> None:
    for told in answers(name).values():
        assert told.profilers_ns == report(name).overhead.untold_ns
        document = json.loads(render("prediction", told, "json"))
        for given in document.get("fixes", []) + document.get("order", []) + [document.get("asked") or {}]:
            if given:
                check(given, withheld=told.profilers_ns is not None)


def check(given: dict[str, Any], *, withheld: bool) -> None:
    """Hold one prediction to its range, and to none of its values where these are withheld."""
    (least, most), (shortest, longest) = given["recoverable_range_ns"], given["range_ns"]
    assert 0 <= least <= most
    assert 0 <= shortest <= longest
    assert not withheld or given["step_ns"] is None
    if given["step_ns"] is None:
        assert [given[field] for field in PREDICTED if given[field] is not None] == []
        assert LEAVES.findall(given["sentence"]) == []
    else:
        assert least <= given["recoverable_ns"] <= most
        assert shortest <= given["step_ns"] <= longest


@pytest.mark.parametrize("name", NAMES)
def test_no_format_of_whatif_says_a_value_where_there_is_a_range_alone(name: str) -> None:
    for told in answers(name).values():
        for form in WORDED["prediction"] if told.profilers_ns is not None else ():
            assert (form, LEAVES.findall(words("prediction", told, form))) == (form, [])


@pytest.mark.parametrize("name", NAMES)
def test_no_row_and_no_cell_of_whatif_holds_a_value_where_there_is_a_range_alone(name: str) -> None:
    for told in answers(name).values():
        rows = frame("prediction", told, "csv")
        assert rows.is_empty() or rows.select("recoverable_low_ns", "recoverable_high_ns").null_count().row(0) == (0, 0)
        if told.profilers_ns is not None:
            assert rows.is_empty() or set(rows.select("step_ns", "recoverable_ns", "bound").row(0)) == {None}
            for table in sheet(told).tables:
                assert {(row[2], row[5]) for row in table.rows} == {("–", "–")}
                assert all(" to " in row[3] and " to " in row[4] for row in table.rows)


@pytest.mark.parametrize("name", NAMES)
def test_both_commands_say_the_same_of_one_fix(name: str) -> None:
    told, given = report(name), answers(name).get("")
    fixes = given.fixes if given else ()
    named = {fix.name: gives for fix, gives in fixes}
    chains = [one for one in told.wait_chains if (one.gpu, one.pid) == (told.steps.gpu, told.steps.pid)]
    for chain in chains if given else ():
        for fix, predicted in (("the chain of waits", chain.joint), ("host twice as fast", chain.half_work)):
            assert list(named[fix].gain_range_ns) == predicted.recoverable_range_ns
            assert list(named[fix].step_range_ns) == predicted.range_ns
            assert (named[fix].value is None) == (predicted.recoverable_ns is None)
        assert {tuple(link.recoverable_range_ns or ()) for link in chain.links} <= {
            gives.gain_range_ns for _, gives in fixes
        }
    phases = {fix.change.role: gives for fix, gives in fixes if isinstance(fix.change, CaptureEager)}
    for finding in told.findings:
        if finding.site.role in phases and finding.recoverable_range_ns:
            assert list(phases[finding.site.role].gain_range_ns) == finding.recoverable_range_ns


def test_such_samples_are_there_with_a_chain_and_with_a_late_host() -> None:
    known = [told for name in NAMES if withheld(told := report(name))]
    assert any(told.wait_chains for told in known)
    assert any(told.host and told.host.shorten for told in known)


def test_the_words_are_found_where_there_are_values() -> None:
    assert len(GIVES.findall(words("report", report("sglang/chain.graph"), "text"))) > 5
    assert len(LEAVES.findall(words("prediction", answers("sglang/chain.graph")[""], "text"))) > 5


def test_a_faster_host_has_no_value_either_where_hardly_any_of_it_surely_remains() -> None:
    told = answers("sglang/chain.graph")
    assert told[""].profilers_ns is None
    assert told["waits"].asked
    assert told["waits"].asked.value
    assert told["host"].asked
    assert told["host"].asked.value is None
    assert "part of the traced step may be the profiler's own time" in words("prediction", told[""], "markdown")


@pytest.mark.parametrize("name", NAMES)
def test_in_a_chain_the_host_prepares_at_least_as_long_as_the_gpu_waits_for_it(name: str) -> None:
    for chain in report(name).wait_chains:
        assert 0 <= (chain.idle_ns or 0) <= (chain.preparing_ns or 0)
        for link in chain.links:
            for value, ends in (
                (link.recoverable_ns, link.recoverable_range_ns),
                (link.in_turn_ns, link.in_turn_range_ns),
            ):
                assert ends is not None
                assert 0 <= ends[0] <= (ends[0] if value is None else value) <= ends[1]
