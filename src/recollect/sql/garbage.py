"""A pause of Python's garbage collector during long reads.

A read of 100,000 items creates about 500,000 objects, and none of them is garbage. The collector would walk
over all of them several times and hold the interpreter's lock each time. Measured with such a read on a
thread, on a loaded machine: without the pause it takes 2 to 3 seconds instead of 0.4 to 1, and it blocks the
event loop for 360 to 490 ms at a time instead of 25 to 80 ms. The pause applies to the whole process, because
Python has one collector. Reference counting still frees objects meanwhile; only cycles have to wait.
"""

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_MANY_OBJECTS = 20_000  # a young collection of fewer takes a millisecond or two
_lock = threading.Lock()
_pauses = 0  # that are active, over all threads


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Run a block without automatic garbage collection. May be nested, and used by several threads."""
    global _pauses
    with _lock:
        # The application may have disabled the collector itself: then it stays disabled.
        is_ours = _pauses > 0 or gc.isenabled()
        if is_ours:
            _pauses += 1
            gc.disable()
    try:
        yield
    finally:
        if is_ours:
            with _lock:
                _pauses -= 1
                if _pauses == 0:
                    _age_new_objects()
                    gc.enable()


@contextmanager
def keep_new_objects() -> Iterator[None]:
    """Run a block without automatic garbage collection. The objects that it creates are there to stay.

    Such a block imports packages. In a process that has frozen its heap, its objects are frozen, too.
    Otherwise, the next collection would walk over all of them: after the import of the Agents SDK, this takes
    100 ms.
    """
    with pause_garbage_collection():
        yield
        if gc.get_freeze_count():
            gc.freeze()


def _reset_after_fork() -> None:
    """Enable the collector in the child: the threads that paused it exist in the parent only."""
    global _lock, _pauses
    _lock = threading.Lock()
    if _pauses:
        _pauses = 0
        gc.enable()


os.register_at_fork(after_in_child=_reset_after_fork)


def _age_new_objects() -> None:
    """Move the objects created during the pause to the oldest generation, without walking over them.

    Otherwise the next young collection would walk over all of them at once. Freezing and unfreezing moves
    objects between lists in constant time. It would also unfreeze objects that the application has frozen,
    so it is skipped if there are any. To count those takes longer the more there are (a service freezes its
    heap), so it is not done after a short read.
    """
    if gc.get_count()[0] > _MANY_OBJECTS and gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()
