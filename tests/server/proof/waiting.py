"""Waiting for what another process does."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(look: Callable[[], T], seconds: float = 60.0) -> T:
    """What a look gives as soon as that is something; a `TimeoutError` where it never is."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)
    return found
