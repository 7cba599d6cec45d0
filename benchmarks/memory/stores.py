"""Stores of ours, on a database of one's own."""

from recollect.memory.pipeline.stages import Extractor
from recollect.memory.store import MemoryStore

OURS = "recollect"


def url_of(place: str) -> str:
    """A path, or a URL with the driver."""
    return place.replace("postgresql://", "postgresql+asyncpg://")


def open_store(place: str, extractor: Extractor | None = None, workers: int = 1) -> MemoryStore:
    """A store that makes its tables."""
    return MemoryStore(url_of(place), extractor=extractor, embedder=None, workers=workers, create_tables=True)
