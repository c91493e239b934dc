"""Secrets planted in every text field of every table never come out of any command, scrubbed or not."""

from __future__ import annotations

import lzma
import sqlite3
from contextlib import closing
from http import HTTPStatus
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.render.formats import Document, formats_of
from bubblefinder.web.process import WORKER
from tests import web

pytestmark = pytest.mark.usefixtures("read_once")

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "tp2_before.node.sqlite.xz"
HIDDEN = "hunter2"
NAMED = "swordfish"
PLANTED = f"{HIDDEN} /home/{HIDDEN}/run {HIDDEN.upper()}_TOKEN={HIDDEN}"
IN_NAMES = f" at /home/{NAMED}/model.py"
NAMES = {("StringIds", "value"), ("NVTX_EVENTS", "text"), ("TARGET_INFO_GPU", "name")}
"""What a program and its libraries call things is shown; a path inside is not part of a name."""
NEEDED = {("META_DATA_EXPORT", "name"), ("TARGET_INFO_SYSTEM_ENV", "name")}
MORE = """
    CREATE TABLE ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER);
    INSERT INTO ProcessStreams VALUES (1, 900001, 900002);
    INSERT INTO StringIds VALUES (900001, '{planted}'), (900002, 'HF_TOKEN={planted}');
    CREATE TABLE SOMETHING_NEW (start INTEGER, note TEXT, data BLOB);
    INSERT INTO SOMETHING_NEW VALUES (1, '{planted}', '{planted}');
    ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN note TEXT;
    UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET note = '{planted}';
    INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', 'HF_TOKEN={planted}');
    INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:COMMAND', 'python'), ('PROCESS_0:ARGUMENT_0', '{planted}');
    INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:WORKING_DIR', '/home/{planted}');
    INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_HOST', '{planted}'), ('EXPORT_USER', '{hidden}');
    INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '{planted}');
    INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1, 'x', 'NvDriverVersion', 1, '{planted}');
    INSERT INTO PROCESSES VALUES (1, 1, '/home/{hidden}/bin/python --token {hidden}');
    INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 2, 1, 2, 'CUDA {named} dropped', 1);
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture with a secret in every text field."""
    path = tmp_path_factory.mktemp("planted") / "capture.sqlite"
    path.write_bytes(lzma.decompress(SAMPLE.read_bytes()))
    with closing(sqlite3.connect(path)) as db, db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[2] == "TEXT"]
            for column in columns:
                if (table, column) in NAMES:
                    db.execute(f"UPDATE {table} SET {column} = {column} || ?", [IN_NAMES])
                elif (table, column) not in NEEDED:
                    db.execute(f"UPDATE {table} SET {column} = ?", [PLANTED])
        db.executescript(MORE.format(planted=PLANTED, hidden=HIDDEN, named=IN_NAMES))
    return path


@pytest.fixture(scope="module")
def scrubbed(planted: Path) -> Path:
    out = planted.with_name("scrubbed.sqlite")
    run("slice", planted, out, "--scrub", "--steps", "0:4")
    return out


WITHOUT_A_CAPTURE = {"calibrate", "capture", "metrics", "recipe", "rules"}
"""Commands that read none: they measure a GPU, print, or are about rules."""
ELSEWHERE = {"serve", "slice"}
"""Served pages and slices have tests of their own below."""


def run(*arguments: object) -> str:
    """What a command says on both its outputs; a gate that fails is an answer as well."""
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code in {0, 1, 3}, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output


def every_file(document: Document, place: Path) -> list[object]:
    """The options that write a document in every format."""
    suffixes = [one.suffixes[0] for one in formats_of(document).values()]
    return [option for suffix in suffixes for option in ("-o", place / f"{document}{suffix}")]


def commands(capture: Path, place: Path) -> list[tuple[object, ...]]:
    """Every command that reads a capture, in every format."""
    kept = ("--history", place / "runs.db")
    budget = place / "budget.toml"
    drafts = ("--draft-steps", 3, "--draft-tokens", 4, "--accept-length", 2)
    return [
        ("analyze", capture, "-v", *every_file("report", place)),
        ("analyze", capture, capture, "-v"),
        ("batch", capture.parent / capture.name, "-o", place / "batch", "--workers", 1),
        ("doctor", capture),
        ("doctor", capture, "--json"),
        ("doctor", capture, "--privacy"),
        ("floor", capture, "--model", "sample-loop", "--json"),
        ("speculation", capture, *drafts, "--plain-ms", 1, "-f", "markdown"),
        ("whatif", capture),
        ("whatif", capture, "--json"),
        ("diff", capture, capture, *every_file("diff", place)),
        ("report", place / "report.html", "-f", "markdown"),
        ("budget", "init", capture, "-o", budget),
        ("budget", "check", capture, "--budget", budget),
        ("history", "add", capture, *kept, "--commit", "a1"),
        ("history", "list", *kept),
        ("history", "show", 1, *kept),
        ("history", "export", *kept),
        ("history", "trend", "step.duration.p50", *kept, "-f", "json"),
        ("nightly", capture, "--budget", budget, *kept, "-o", place / "night"),
    ]


def everything(capture: Path, place: Path) -> str:
    """All that any command says or writes about a capture."""
    said = [run(*command) for command in commands(capture, place)]
    written = [path.read_bytes().decode(errors="replace") for path in place.rglob("*") if path.is_file()]
    assert len(written) > len(formats_of("report"))
    return "\n".join([*said, *written])


def test_every_command_that_reads_a_capture_is_asked(tmp_path: Path) -> None:
    names = set(get_command(app).commands)  # type: ignore[attr-defined]
    asked = {str(command[0]) for command in commands(tmp_path / "x", tmp_path)}
    assert asked == names - WITHOUT_A_CAPTURE - ELSEWHERE


async def served(capture: Path, root: Path) -> str:
    """All that the server answers about a capture, its log and its folder apart."""
    async with web.site(root, worker=WORKER) as here:
        run_id = await here.put(capture.read_bytes(), name="capture.sqlite")
        settled = await here.settled(run_id)
        assert settled["state"] == "done", settled
        run, api = f"/runs/{run_id}", f"/api/runs/{run_id}"
        pages = ("/", run, f"{run}/timeline", "/server", "/metrics", f"/diff?base={run_id}&head={run_id}")
        answers = (f"{api}/report.json", f"{api}/report.html", f"{api}/report.md", f"{api}/find?text=e", "/api/runs")
        said = [await here.client.get(path) for path in (*pages, *answers)]
        assert {str(answer.url): answer.status_code for answer in said if answer.status_code != HTTPStatus.OK} == {}
        return "\n".join(answer.text for answer in said)


@web.asynchronous
async def test_no_served_page_tells_what_a_capture_holds_besides_names(planted: Path, tmp_path: Path) -> None:
    assert HIDDEN not in (await served(planted, tmp_path)).lower()


def test_no_command_tells_what_a_capture_holds_besides_names(planted: Path, tmp_path: Path) -> None:
    assert HIDDEN not in everything(planted, tmp_path).lower()


def test_nothing_is_told_of_a_scrubbed_capture(scrubbed: Path, tmp_path: Path) -> None:
    said = everything(scrubbed, tmp_path).lower()
    assert HIDDEN not in said
    assert NAMED not in said
    assert "decode_step" in said


def test_no_byte_of_a_secret_is_in_a_scrubbed_file(scrubbed: Path, planted: Path) -> None:
    found = scrubbed.read_bytes().lower()
    for secret in (HIDDEN, NAMED):
        assert secret.encode() in planted.read_bytes().lower()
        assert secret.encode() not in found


def test_the_kinds_are_listed(planted: Path, scrubbed: Path) -> None:
    said = run("doctor", planted, "--privacy")
    for kind in (
        "environment variables", "command lines", "folders", "user names", "host names", "captured output",
        "processes of the machine", "paths inside texts", "tables that bubblefinder doesn't know", "time zone",
    ):  # fmt: skip
        assert kind in said
    assert run("doctor", scrubbed, "--privacy") == "It holds no kind of personal data that bubblefinder knows.\n"
