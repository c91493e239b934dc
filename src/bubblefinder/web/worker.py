"""Jobs, each in a process of its own and within its limits, one after the other.

Run as ``python -m bubblefinder.web.worker``. What every job needs takes longer to load than many a capture to
analyse, so it is loaded once, here, and each job is done by a fork that sees no other job: this process reads nothing.
A job comes as one line of JSON on stdin, which then stays open: its end means that the server is gone, and the job
with it. To stdout go lines of JSON: the `pid` of a fork before it takes a job, its progress and outcome, and with which
exit code it `ended`, by when nothing is left of it.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.errors import EXIT_INPUT, BubblefinderError
from bubblefinder.memory import collect_seldom
from bubblefinder.web.archive import TRACE
from bubblefinder.web.limits import NO_ROOM, Limit
from bubblefinder.web.orders import Comparison, Upload
from bubblefinder.web.work import analyse, compare, prepare

if TYPE_CHECKING:
    from collections.abc import Callable

_GONE: Final = 70


def main() -> int:
    """Fork for one job after the other until the server is gone; return the exit code of the last."""
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(**said: Any) -> None:  # noqa: ANN401 - whatever JSON can say
        told.write(json.dumps(said) + "\n")
        told.flush()

    collect_seldom()
    prepare()
    gc.freeze()
    # Importing polars starts threads that only tidy up; those that work start with its first query, in the fork.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    while fork := os.fork():
        _, status = os.waitpid(fork, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == _GONE:
            return code
        tell(ended=code)
    tell(pid=os.getpid())
    line = sys.stdin.readline()
    return work(json.loads(line), tell) if line else _GONE


def work(order: dict[str, Any], tell: Callable[..., None]) -> int:
    """Do one job within its limits and return the exit code."""
    os.umask(0o077)
    os.nice(5)
    threading.Thread(target=_die_with_the_server, daemon=True).start()
    limit = Limit(**order["limit"])
    _confine(limit)
    try:
        done = (
            analyse(Upload(**order["analysis"]), tell, lambda size_bytes: _confine(limit.fitted(size_bytes)))
            if "analysis" in order
            else compare(Comparison(**order["comparison"]))
        )
    except BubblefinderError as error:
        name = order.get("analysis", {}).get("name", "")
        tell(error=_about(str(error), name), hint=_about(error.hint, name))
        return error.exit_code
    except MemoryError:
        tell(memory=True)
        return EXIT_INPUT
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        tell(disk=True)
        return EXIT_INPUT
    tell(done=done)
    return 0


def _about(message: str, name: str) -> str:
    """Call the trace what its sender calls it."""
    return message.replace(f"{TRACE}.nsys-rep", name).replace(TRACE, name)


def _confine(limit: Limit) -> None:
    """Lower what this process may use; a processor second on every core is what wall time allows for."""
    for what, bound in (
        (resource.RLIMIT_DATA, limit.memory_bytes),
        (resource.RLIMIT_FSIZE, limit.file_bytes),
        (resource.RLIMIT_CPU, int(limit.seconds * (os.cpu_count() or 1)) + 1),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (bound, bound))


def _die_with_the_server() -> None:
    while os.read(0, 4096):
        pass
    os._exit(_GONE)


if __name__ == "__main__":
    sys.exit(main())
