"""Keeping Python's garbage collector out of long reads.

A read of 100,000 items makes some 500,000 objects, none of them garbage. The collector would walk over all
of them again and again, holding the interpreter each time, which is what stalls an event loop.
"""

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_holders = 0


@contextmanager
def collector_held_off() -> Iterator[None]:
    """Run a block without automatic garbage collection. Nests, across threads."""
    global _holders
    with _lock:
        if _holders == 0 and not gc.isenabled():  # the application wants it off: leave it alone
            holding = False
        else:
            holding = True
            _holders += 1
            gc.disable()
    try:
        yield
    finally:
        if holding:
            with _lock:
                _holders -= 1
                if _holders == 0:
                    _age_new_objects()
                    gc.enable()


def _start_anew() -> None:
    """After a fork, in the child: the threads that held it off are not there."""
    global _lock, _holders
    _lock = threading.Lock()
    if _holders:
        _holders = 0
        gc.enable()


os.register_at_fork(after_in_child=_start_anew)


def _age_new_objects() -> None:
    """Move what was made meanwhile to the oldest generation, without a walk over it.

    Otherwise the next young collection would walk over all of it at once. Freezing and thawing moves objects
    from list to list in constant time; where an application has frozen objects of its own, thawing would
    undo that, so it is left.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()
