"""Serves a folder: `served.py ORDER`, which is JSON with the folder, port, limits, token and worker.

It reads no more than a server needs: tests start dozens.
"""

from __future__ import annotations

import json
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

from bubblefinder.web.limits import Limits
from bubblefinder.web.server import run
from bubblefinder.web.service import Service


def pretend(told: Path) -> None:
    """Let the free room on any disk be what a file says, while there is one."""
    real = shutil.disk_usage

    def usage(path: Any) -> Any:
        found = real(path)
        return found._replace(free=int(told.read_text())) if told.exists() else found

    shutil.disk_usage = usage


def main() -> None:
    """Serve what the argument says."""
    order = json.loads(sys.argv[1])
    limits = Limits(**order["limits"])
    if order["free"]:
        pretend(Path(order["free"]))
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", order["port"]))
    listener.listen(128)
    service = Service(Path(order["root"]), limits, token=order["token"], worker=order["worker"])
    run([listener], service, limits, order["proxies"])


if __name__ == "__main__":
    main()
