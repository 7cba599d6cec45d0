"""A cache of vectors in memory, for comparisons within one memory."""

import threading
from collections import OrderedDict
from typing import NamedTuple

from .vector_queries import Kind, Matrix


class KeyedVectors(NamedTuple):
    """Vectors, with the keys of their rows."""

    keys: list[tuple[str, ...]]
    matrix: Matrix


class CacheKey(NamedTuple):
    """The vectors of a memory that can be compared with each other."""

    memory_id: str
    kind: Kind
    model: str
    tenant: str
    dimension: int


class VectorCache:
    """The vectors of the memories that were searched last, up to a number of bytes. Safe in threads."""

    def __init__(self, max_bytes: int = 64 * 2**20) -> None:
        self._max_bytes = max_bytes
        self._cached: OrderedDict[CacheKey, tuple[int, KeyedVectors]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: CacheKey, stamp: int) -> KeyedVectors | None:
        """The cached vectors; `None` if there are none of this stamp."""
        with self._lock:
            cached_stamp, cached = self._cached.get(key, (None, None))
            if cached_stamp != stamp:
                return None
            self._cached.move_to_end(key)
            return cached

    def put(self, key: CacheKey, stamp: int, vectors: KeyedVectors) -> None:
        """Cache vectors. Above the limit, the least recently used ones are dropped."""
        with self._lock:
            self._cached[key] = (stamp, vectors)
            self._cached.move_to_end(key)
            while sum(cached.matrix.nbytes for _, cached in self._cached.values()) > self._max_bytes:
                self._cached.popitem(last=False)

    def clear(self, memory_id: str) -> None:
        """Drop the vectors of a memory."""
        with self._lock:
            for key in [key for key in self._cached if key.memory_id == memory_id]:
                del self._cached[key]
