"""JUnit XML of what was judged, for the test tab of a CI."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from bubblefinder.report.sentences import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bubblefinder.render.kit.sheet import Case, Sheet


def write(sheet: Sheet) -> str:
    """Return a test suite with a case for each thing judged: wrong is a failure, what nobody can tell an error."""
    levels = [case.level for case in sheet.cases]
    numbers = {"tests": len(levels), "failures": levels.count("fail"), "errors": levels.count("unknown")}
    counted = {name: str(number) for name, number in numbers.items()}
    suites = ET.Element("testsuites", counted)
    suite = ET.SubElement(suites, "testsuite", {"name": plain(sheet.title)} | counted)
    for case in sheet.cases:
        _case(suite, case, sheet.document)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def add_properties(of: ET.Element, values: Mapping[str, object]) -> None:
    """Add those properties to a suite or a case that are known."""
    parent = ET.SubElement(of, "properties")
    for name, value in values.items():
        if value not in (None, ""):
            ET.SubElement(parent, "property", name=name, value=str(value))


def _case(suite: ET.Element, one: Case, document: str) -> None:
    case = ET.SubElement(suite, "testcase", {"classname": f"bubblefinder.{document}", "name": plain(one.name)})
    add_properties(case, {name: plain(value) for name, value in one.properties})
    message = plain(one.message, 400)
    if one.level == "fail":
        ET.SubElement(case, "failure", {"type": "fail", "message": message}).text = plain(one.text, 400)
    elif one.level == "unknown":
        ET.SubElement(case, "error", {"type": one.kind, "message": message})
    else:
        ET.SubElement(case, "system-out").text = f"{one.kind}: {message}"
