"""Synchronous calls of asynchronous methods, on one event loop of the process.

Frameworks such as LangGraph have a synchronous and an asynchronous method for each operation. We write the
asynchronous one. The synchronous one runs it on a loop with a thread of its own, so it also works inside a
running event loop, which it blocks as any synchronous call does.
"""

import atexit
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..memory.background import BackgroundLoop

T = TypeVar("T")

_LOOP = BackgroundLoop("recollect-blocking")
atexit.register(_LOOP.stop)


def run_blocking(call: Coroutine[Any, Any, T]) -> T:
    """Run an asynchronous call from synchronous code, and return its result."""
    return _LOOP.run(call)
