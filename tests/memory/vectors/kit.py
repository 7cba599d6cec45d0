"""What these tests share: a store with texts, and embedders that are simple and real."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.memory.database.access import MemoryDatabase
from recollect.memory.database.vectors import NewVector, Vectors, model_of
from recollect.memory.search.embedders import CallableEmbedder
from recollect.memory.store import MemoryStore


def database_of(store: MemoryStore) -> MemoryDatabase:
    return store._database


def vectors_of(store: MemoryStore, tenant: str = "default") -> Vectors:
    return Vectors(database_of(store), tenant)


def direction_of(text: str, dimension: int = 8) -> NDArray[np.float32]:
    """A vector that depends on nothing but the text."""
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8])
    return np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)


def embedder(
    made: Callable[[str], Any] = direction_of, *, name: str = "small", dimensions: int = 8
) -> CallableEmbedder:
    """Embeds each text by a function."""
    return CallableEmbedder(lambda texts: [made(text) for text in texts], name=name, dimensions=dimensions)


MODEL = model_of(embedder())


async def add_entries(store: MemoryStore, user: str, texts: Sequence[str]) -> dict[str, str]:
    """Entries of a user: their ids by their texts."""
    added = [await store.add_entry("agent", user, "profile", text) for text in texts]
    return {entry.text: entry.content_id for entry in added}


async def add_turns(store: MemoryStore, user: str, texts: Sequence[str], role: str = "user") -> Any:
    """A conversation in which a text after the other is said."""
    messages = [{"role": role, "content": text} for text in texts]
    return await store.record_conversation("agent", user, messages)


async def embed_all(vectors: Vectors, model: str = MODEL, dimension: int = 8) -> int:
    """Give everything that is pending its direction."""
    pending = await vectors.pending(model, 1000)
    return await vectors.store(
        model, [NewVector(each, direction_of(each.text, dimension)) for each in pending]
    )


async def memory_of(store: MemoryStore, user: str) -> str:
    memory = await store.get_memory("agent", user)
    assert memory is not None
    assert memory.memory_id is not None
    return memory.memory_id
