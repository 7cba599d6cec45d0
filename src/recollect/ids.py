"""New random ids, as fast as they are needed.

`uuid.uuid4` asks the operating system for each id, and other threads run meanwhile: a busy event loop waits
for them at every id. So random bytes are fetched for many ids at once.
"""

import os
from collections import deque

_BYTES = 16
_AT_ONCE = 256
_VARIANTS = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
_pool: deque[bytes] = deque()
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_pool.clear)  # a child must not give out the ids of its parent


def new_id() -> str:
    """A new UUID of version 4, as a text."""
    return uuid_text(random_bytes(), "4")


def new_hex() -> str:
    """A new id of 32 hexadecimal digits."""
    return random_bytes().hex()


def random_bytes() -> bytes:
    """16 random bytes of the operating system."""
    try:
        return _pool.pop()
    except IndexError:
        fetched = os.urandom(_BYTES * _AT_ONCE)
        _pool.extend(fetched[place : place + _BYTES] for place in range(_BYTES, len(fetched), _BYTES))
        return fetched[:_BYTES]


def uuid_text(number: bytes, version: str) -> str:
    """16 bytes as the text of a UUID of a version."""
    digits = number.hex()
    return (
        f"{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}"
        f"-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:]}"
    )
