"""The real Nsight Systems 2023.4 of Debian's non-free component, unpacked under build/ and nowhere else.

`python tests/real_nsys.py` fetches it (190 MB), apart from the packages and lists of the system: nothing is installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

PLACE = Path(__file__).parents[1] / "build" / "nsys-2023.4"
COMMAND = PLACE / "usr" / "bin" / "nsys"
PACKAGES = ("nsight-systems", "nsight-systems-target", "libssh-4")
SUITE = "trixie"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
IMPORTER = PLACE / "usr" / "lib" / "nsight-systems" / "host-linux-x64"


class UnavailableError(Exception):
    """It can't be had here, and why."""


def fetch() -> Path:
    """Return the nsys command, fetched if it isn't there."""
    if not COMMAND.exists():
        PLACE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="nsys-") as scratch:
            for package in _download(Path(scratch)):
                _run(["dpkg-deb", "-x", str(package), str(PLACE)])
        for name in ("libssh.so", "libssh.so.4"):
            link = IMPORTER / name
            link.unlink(missing_ok=True)
            link.symlink_to("../../x86_64-linux-gnu/libssh.so.4")
    if not COMMAND.exists():
        raise UnavailableError("the packages hold no nsys")
    return COMMAND


def _download(scratch: Path) -> list[Path]:
    lists, cache, sources = (scratch / name for name in ("lists", "cache", "sources"))
    for folder in (lists / "partial", cache / "archives" / "partial", sources):
        folder.mkdir(parents=True)
    text = f"Types: deb\nURIs: {_mirror()}\nSuites: {SUITE}\nComponents: main non-free\nSigned-By: {KEYS}\n"
    (sources / "debian.sources").write_text(text)
    settings = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": sources,
        "Dir::State::Lists": lists,
        "Dir::State::status": "/dev/null",
        "Dir::Cache": cache,
        "APT::Sandbox::User": "",
        "APT::Architecture": "amd64",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    _run(["apt-get", "-qq", *options, "update"])
    _run(["apt-get", "-qq", *options, "download", *PACKAGES], cwd=scratch)
    return sorted(scratch.glob("*.deb"))


def _mirror() -> str:
    """Where this machine gets its own Debian packages."""
    listed = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"])
    found = next((line for line in listed.splitlines() if line.rstrip("/").endswith("/debian")), None)
    if found is None or not KEYS.is_file():
        raise UnavailableError("this is no Debian machine, or its archive isn't known")
    return found


def _run(command: list[str], cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=900, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(str(error)) from error
    if done.returncode:
        raise UnavailableError(" ".join(done.stderr.split())[-300:])
    return done.stdout


if __name__ == "__main__":
    try:
        print(fetch())  # noqa: T201 - it is a program
    except UnavailableError as error:
        sys.exit(f"Nsight Systems 2023.4 could not be fetched from Debian's non-free component: {error}")
