"""`bubblefinder serve`: the page to drop a trace on."""

from __future__ import annotations

import os
import socket
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from bubblefinder.errors import UsageError

_GIB = 1 << 30
_BACKLOG = 512
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

_Port = Annotated[
    int, typer.Option(metavar="PORT", min=0, max=65535, help="The port to listen on; 0 takes a free one.")
]
_Data = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="The folder for runs and reports (default: bubblefinder in the user's data folder)."
    ),
]
_NoOpen = Annotated[bool, typer.Option("--no-open", help="Don't open the browser.")]
_Host = Annotated[
    str, typer.Option(metavar="ADDRESS", help="The address to listen on; any but this machine's own needs a token.")
]
_Token = Annotated[
    str | None,
    typer.Option(
        envvar="BUBBLEFINDER_TOKEN",
        metavar="TOKEN",
        help="What visitors must know; better given by the environment, where no process list shows it.",
    ),
]
_Proxy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ADDRESS",
        help="A reverse proxy whose word is taken on who calls and whether by HTTPS; may be repeated.",
    ),
]
_MaxUpload = Annotated[float, typer.Option(metavar="GIB", min=0.001, help="Longest upload.")]
_MaxDisk = Annotated[float, typer.Option(metavar="GIB", min=0.001, help="Most that the data folder may hold.")]
_Keep = Annotated[float, typer.Option(metavar="DAYS", min=0.01, help="Age at which a run is deleted.")]
_Jobs = Annotated[int, typer.Option(metavar="N", min=1, help="Traces to work on at once.")]
_Memory = Annotated[float, typer.Option(metavar="GIB", min=0.25, help="Memory of one job.")]


def serve(
    port: _Port = 8350,
    data: _Data = None,
    no_open: _NoOpen = False,
    host: _Host = "127.0.0.1",
    token: _Token = None,
    proxy: _Proxy = None,
    max_upload: _MaxUpload = 8,
    max_disk: _MaxDisk = 100,
    keep: _Keep = 90,
    jobs: _Jobs = 2,
    memory: _Memory = 6,
) -> None:
    """Serve a page to drop traces on; programs can upload too."""
    from bubblefinder.web.limits import Limits, checked_token

    token = checked_token(token)
    if host not in _LOOPBACK and token is None:
        raise UsageError(
            f"--host {host} lets others in, so it needs a token", hint="set BUBBLEFINDER_TOKEN, or give --token"
        )
    listener = _bound(host, port)
    try:
        from bubblefinder.web.server import run
        from bubblefinder.web.service import Service
    except ImportError as error:
        raise UsageError(
            "the web page needs packages that are not installed",
            hint="in bubblefinder's source folder: pip install '.[web]'",
        ) from error
    limits = Limits(
        upload_bytes=round(max_upload * _GIB),
        disk_bytes=round(max_disk * _GIB),
        keep_s=keep * 86_400,
        jobs=jobs,
        job_bytes=round(memory * _GIB),
    )
    url = _url(host, listener.getsockname()[1])
    typer.echo(f"bubblefinder listens on {url} (Ctrl-C stops it)")
    if not no_open:
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
    os.umask(0o077)
    run([listener], Service(data or _default_folder(), limits, token=token), limits, proxy or ())


def _bound(host: str, port: int) -> socket.socket:
    """Return a listening socket: from here on the port answers, while the rest is still loading."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends without delay only on sockets that name their protocol; otherwise most answers wait 40 ms for an ACK
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"can't listen on {host} port {port}: {error.strerror}", hint="another port: --port 0 takes a free one"
        ) from error
    listener.listen(_BACKLOG)
    return listener


def _url(host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/"


def _default_folder() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "bubblefinder"
