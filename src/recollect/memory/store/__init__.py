"""The face of long-term memory: what callers use."""

from .store import MemoryStore

__all__ = ["MemoryStore"]
