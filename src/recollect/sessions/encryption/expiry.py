"""How long an item may be read after it was encrypted."""

import math
import time

from .ciphers import STAMP_BYTES, stamp_of

_ANY_TIME = bytes(STAMP_BYTES)


def check_ttl(ttl: float | None) -> float | None:
    """The time to live if it makes sense: more than 0 seconds, or `None` for ever."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl < math.inf:
        raise ValueError(f"ttl must be more than 0 seconds, or None for ever, and it is {ttl!r}")
    return ttl


def now() -> bytes:
    """The time, as tokens hold it."""
    return stamp_of(time.time())


def earliest(ttl: float | None) -> bytes:
    """The stamp from which on an item may be read. One from the future, by a clock that went back, may."""
    if ttl is None:
        return _ANY_TIME
    return stamp_of(max(0, math.ceil(int(time.time()) - ttl)))
