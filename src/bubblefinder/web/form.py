"""The form for browsers without JavaScript: multipart, parsed as it streams, files straight to disk."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from bubblefinder.web.limits import RefusedError
from bubblefinder.web.uploads import Incoming, Intake, Wanted, file_name, text

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks
    from starlette.requests import Request

    from bubblefinder.web.shelf import StoredRun

FILE: Final = "file"
BASELINE: Final = "baseline"
_FIELD_BYTES: Final = 2_000
_PARTS: Final = 10


async def receive_form(request: Request, intake: Intake) -> StoredRun:
    """Store the one or two files of a form and return the run of the first.

    Raises:
        RefusedError: a limit was met, a file is no trace, or the form is broken.
    """
    with ExitStack() as files:
        form = _Form(intake, files)
        try:
            parser = MultipartParser(_boundary(request), form.callbacks())
            async for chunk in request.stream():
                parser.write(chunk)
                await form.digest()
            parser.finalize()
            await form.digest()
        except (FormParserError, ClientDisconnect) as error:
            raise _damaged() from error
        return await form.keep()


def _boundary(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data" or b"boundary" not in options:
        raise RefusedError(415, "This is not a form with files.", hint="Send multipart/form-data.")
    return options[b"boundary"]


def _damaged() -> RefusedError:
    return RefusedError(400, "The form was cut short or is damaged.", hint="Send it again.")


@dataclass(slots=True)
class _Part:
    name: str = ""
    file_name: str = ""
    value: bytearray = field(default_factory=bytearray)
    header: bytearray = field(default_factory=bytearray)
    disposition: bytes = b""
    incoming: Incoming | None = None


class _Form:
    """Follows the parser: its callbacks can't wait, so they take notes, and `digest` acts on them."""

    def __init__(self, intake: Intake, files: ExitStack) -> None:
        self._intake = intake
        self._files = files
        self._pieces: list[tuple[Incoming, bytes]] = []
        self._part = _Part()
        self._parts: list[_Part] = []
        self._room = intake.room()
        self._complete = False

    def callbacks(self) -> MultipartCallbacks:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._data,
            "on_end": self._end,
        }

    async def digest(self) -> None:
        """Write to disk what the last piece of the body held of files."""
        pieces, self._pieces = self._pieces, []
        for incoming, piece in pieces:
            await self._intake.take(incoming, piece, self._room)

    async def keep(self) -> StoredRun:
        """Make runs of the files, once all of the form is there: the baseline first, since the other names it."""
        if not self._complete:
            raise _damaged()
        parts = {part.name: part for part in self._parts}
        if FILE not in parts or parts[FILE].incoming is None:
            raise RefusedError(400, "No file was chosen.", hint="Choose a trace and send the form again.")
        label, commit = (self._text(parts.get(name)) for name in ("label", "commit"))
        earlier = parts.get(BASELINE)
        baseline = None
        if earlier is not None and earlier.incoming is not None:
            run = await self._intake.keep(earlier.incoming, Wanted(file_name(earlier.file_name)))
            baseline = run.id
        wanted = Wanted(file_name(parts[FILE].file_name), label, commit, baseline)
        return await self._intake.keep(parts[FILE].incoming, wanted)

    @staticmethod
    def _text(part: _Part | None) -> str | None:
        return text(part.value.decode(errors="replace")) if part else None

    def _end(self) -> None:
        self._complete = True

    def _begin(self) -> None:
        self._part = _Part()
        self._parts.append(self._part)
        if len(self._parts) > _PARTS:
            raise RefusedError(400, "The form has too many parts.", hint="Send two files at most.")

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._part.header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        if self._part.header.lower() == b"content-disposition":
            self._part.disposition += data[start:end]

    def _header_end(self) -> None:
        self._part.header.clear()

    def _headers_finished(self) -> None:
        part = self._part
        _, options = parse_options_header(part.disposition)
        part.name = options.get(b"name", b"").decode(errors="replace")
        part.file_name = options.get(b"filename", b"").decode(errors="replace")
        if part.file_name and part.name in {FILE, BASELINE}:
            part.incoming = self._files.enter_context(self._intake.open())

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._part.incoming is not None:
            self._pieces.append((self._part.incoming, data[start:end]))
            return
        self._part.value += data[start:end]
        if len(self._part.value) > _FIELD_BYTES:
            raise RefusedError(413, "A field of the form is too long.", hint="Use a shorter label.")
