"""New ids, as fast as they are needed.

The id of a stored object begins with its time. Objects that are stored together are therefore neighbours in
every index, and a transaction changes few pages of a database.

`uuid.uuid4` asks the operating system for each id, and other threads run meanwhile: a busy event loop waits
for them at every id. So random bytes are fetched for many ids at once.
"""

import itertools
import os
import secrets
import time
from collections import deque

_BYTES = 16
_AT_ONCE = 256
_VARIANTS = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
_pool: deque[bytes] = deque()
_numbers = itertools.count(secrets.randbits(20))  # random, so that processes rarely start alike
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_pool.clear)  # a child must not give out the ids of its parent


def new_id() -> str:
    """A new id of a stored object: a UUID of version 7 with the current time and 62 random bits."""
    return uuid7(time.time_ns() // 1000, int.from_bytes(random_bytes()[:8], "big") >> 2)


def time_ordered_id(microseconds: int) -> str:
    """A UUID of version 7: ids sort by time, and those of one process and time by the order of calls."""
    random_bits = int.from_bytes(random_bytes()[:5], "big") >> 2
    return uuid7(microseconds, (next(_numbers) & 0xFFFFFF) << 38 | random_bits)


def uuid7(microseconds: int, rest: int) -> str:
    """The bits: milliseconds since 1970, version, remaining microseconds, variant, and 62 free bits."""
    milliseconds, remaining = divmod(microseconds, 1000)
    return _text_of(f"{milliseconds << 80 | 7 << 76 | remaining << 64 | 2 << 62 | rest:032x}")


def new_hex() -> str:
    """A new random id of 32 hexadecimal digits."""
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
    return _text_of(f"{digits[:12]}{version}{digits[13:16]}{_VARIANTS[digits[16]]}{digits[17:]}")


def _text_of(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
