"""Rate limits that all processes of one service share.

The buckets are records of a file in memory that every process inherits. A record belongs to one tenant: it
has a hash of the tenant, the requests left and the time. The clock is monotonic for the whole machine. A lock
on the record makes each change atomic, and ends with the process that holds it.
"""

import fcntl
import os
import struct
import tempfile
import time
from collections.abc import Callable
from hashlib import blake2b

from .limits import Bucket, RateLimiter, take_from

_RECORDS = 16_384  # tenants; a tenant that finds no free record is limited in each process on its own
_PROBES = 16
_HASH = 16  # bytes
_RECORD = struct.Struct(f"{_HASH}sdd")


def create_shared_buckets() -> int:
    """A file descriptor of empty buckets, for the processes of one service to inherit."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("recollect-rates")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, _RECORDS * _RECORD.size)
    return descriptor


class SharedRateLimiter(RateLimiter):
    """Limits the request rates of tenants in all processes that have the same buckets."""

    def __init__(self, descriptor: int, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._descriptor = descriptor

    def take(self, tenant: str, per_minute: int) -> float:
        """Count a request: 0 if it is allowed, else the seconds until the next one is."""
        tenant_hash = blake2b(tenant.encode(), digest_size=_HASH).digest()
        first = int.from_bytes(tenant_hash[:8], "little")
        for step in range(_PROBES):
            wait = self._take_from_record((first + step) % _RECORDS, tenant_hash, per_minute)
            if wait is not None:
                return wait
        return super().take(tenant, per_minute)

    def _take_from_record(self, number: int, tenant_hash: bytes, per_minute: int) -> float | None:
        """Take from a record, or return `None` if it belongs to another tenant."""
        offset = number * _RECORD.size
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX, _RECORD.size, offset)
        try:
            owner, left, at = _RECORD.unpack(os.pread(self._descriptor, _RECORD.size, offset))
            is_free = owner == bytes(_HASH)
            if not is_free and owner != tenant_hash:
                return None
            bucket, wait = take_from(None if is_free else Bucket(left, at), per_minute, self._clock())
            os.pwrite(self._descriptor, _RECORD.pack(tenant_hash, *bucket), offset)
            return wait
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, _RECORD.size, offset)
