"""Start server processes that end when this process ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

# Runs in the child process, which then becomes the server: only a process itself can set its death signal.
# Changing the user clears that setting, so the user changes first.
_LAUNCHER = """
import ctypes, os, sys
parent, death, user, group = map(int, sys.argv[1:5])
if user >= 0:
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
try:
    ctypes.CDLL(None).prctl(1, death)  # PR_SET_PDEATHSIG
except AttributeError:
    pass  # not on Linux
if os.getppid() == parent:
    os.execv(sys.argv[5], sys.argv[5:])
"""


def launch(
    command: Sequence[str],
    log: Path,
    *,
    on_our_death: signal.Signals = signal.SIGKILL,
    user: tuple[int, int] | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a server that appends its output to a log and, on Linux, gets a signal when this process ends.

    `user` is a user and group to run it as.
    """
    launcher = ending_with_us(on_our_death, user)

    def start() -> "subprocess.Popen[bytes]":
        with log.open("ab") as file:
            return subprocess.Popen([*launcher, *command], stdout=file, stderr=file, cwd="/")

    return _lasting_thread(os.getpid()).submit(start).result()


def ending_with_us(
    on_our_death: signal.Signals = signal.SIGKILL, user: tuple[int, int] | None = None
) -> list[str]:
    """Return a command prefix. On Linux the command gets a signal when the starting thread ends."""
    numbers = (os.getpid(), on_our_death, *(user or (-1, -1)))
    return [sys.executable, "-I", "-S", "-c", _LAUNCHER, *(str(int(number)) for number in numbers)]


@cache
def _lasting_thread(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a forked process needs its own
    """Return a thread that lives as long as the process: on Linux, the parent of a process is a thread."""
    return ThreadPoolExecutor(1, thread_name_prefix="recollect-servers")
