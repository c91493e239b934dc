"""The schemas in docs/schema of what is written as JSON, and of budget files."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from bubblefinder.compare.budget import BudgetFile
from bubblefinder.compare.model import SCHEMA as DIFF
from bubblefinder.compare.model import Diff
from bubblefinder.report.model import SCHEMA as REPORT
from bubblefinder.report.model import Report

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def report_schema() -> dict[str, Any]:
    """The JSON Schema of report/1."""
    return {"$schema": _DIALECT, "$id": REPORT, "title": REPORT, **msgspec.json.schema(Report)}


def diff_schema() -> dict[str, Any]:
    """The JSON Schema of diff/1."""
    return {"$schema": _DIALECT, "$id": DIFF, "title": DIFF, **msgspec.json.schema(Diff)}


def budget_schema() -> dict[str, Any]:
    """The JSON Schema of budget files."""
    return {"$schema": _DIALECT, "$id": "bubblefinder.budget/1", **BudgetFile.model_json_schema()}


def schema_file(schema: object) -> str:
    """A published schema, in the form that all of them have."""
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
