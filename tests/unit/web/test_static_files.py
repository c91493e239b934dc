from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from tests.web import asynchronous, site

if TYPE_CHECKING:
    from pathlib import Path


@asynchronous
async def test_a_file_is_packed_once_and_not_sent_to_who_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(tmp_path) as here:
        first = await here.client.get("/static/plotly.js")
        monkeypatch.setattr(gzip, "compress", None)
        again = await here.client.get("/static/plotly.js")
        plain = await here.client.get("/static/plotly.js", headers={"accept-encoding": "identity"})
        assert first.content == again.content == plain.content
        assert again.headers["content-encoding"] == "gzip"
        assert int(again.headers["content-length"]) < len(plain.content) / 2
        held = await here.client.get("/static/plotly.js", headers={"if-none-match": first.headers["etag"]})
        assert (held.status_code, held.content) == (304, b"")


@pytest.mark.parametrize("name", ["nothing.js", "..%2fapp.py", "upload.js.bak", "plotly"])
@asynchronous
async def test_what_is_not_there_is_not_there(tmp_path: Path, name: str) -> None:
    async with site(tmp_path) as here:
        assert (await here.client.get(f"/static/{name}")).status_code == 404
