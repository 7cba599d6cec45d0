"""How the threads of a process that is ours alone share the interpreter."""

import sys

_SWITCH_SECONDS = 0.0005


def switch_threads_often() -> None:
    """Let a thread that waits for the interpreter get it after half a millisecond instead of five.

    A thread that writes to a file gives the interpreter away at each statement, and then waits for it while
    it holds the lock of the file. If other threads compute, a transaction of ten statements takes 50 ms that
    way, and all processes that write to the file wait for it.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
