"""Memories of CrewAI as records, exactly, and which of them a call asks for. Pure functions."""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from crewai.memory.types import MemoryRecord

from ...items import Item
from ...items.originals import Original
from ..framework import Framework

_VECTOR = "embedding"


def record_of(memory: MemoryRecord) -> Original:
    """A memory as JSON, with its vector, which CrewAI itself would leave out."""
    vector = None if memory.embedding is None else b64encode(np.asarray(memory.embedding, "<f8").tobytes())
    return {**memory.model_dump(mode="json"), _VECTOR: vector and vector.decode()}


def memory_of(record: Original) -> MemoryRecord:
    """The memory of a record."""
    found = vector_of(record)
    return MemoryRecord.model_validate({**record, _VECTOR: None if found is None else found.tolist()})


def vector_of(record: Original) -> Any:
    """The vector of a record; `None` if it has none."""
    packed = record[_VECTOR]
    return None if packed is None else np.frombuffer(b64decode(packed), "<f8")


def items_of(record: Original) -> list[Item]:
    """What a memory says. Nobody said it in a conversation, so it is a message of the system."""
    return [{"type": "message", "role": "system", "content": record["content"]}]


def is_within(record: Original, scope: str | None) -> bool:
    """Whether a memory is in a scope or in one below it."""
    prefix = normal_scope(scope)
    return prefix == "/" or record["scope"] == prefix or record["scope"].startswith(f"{prefix}/")


def normal_scope(scope: str | None) -> str:
    """A scope as a path without a slash at its end; the root is `/`."""
    inner = (scope or "").strip("/")
    return f"/{inner}"


def child_scopes(records: Sequence[Original], parent: str) -> list[str]:
    """The scopes right below a scope that have memories, in them or below them."""
    prefix = normal_scope(parent).rstrip("/") + "/"
    below = {record["scope"][len(prefix) :] for record in records if record["scope"].startswith(prefix)}
    return sorted({prefix + each.split("/")[0] for each in below if each})


@dataclass(frozen=True)
class Wanted:
    """Which memories a call asks for: all criteria that are given hold."""

    scope: str | None = None
    categories: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    older_than: datetime | None = None
    metadata: dict[str, Any] | None = None

    def has(self, record: Original) -> bool:
        """Whether a memory is asked for."""
        return (
            is_within(record, self.scope)
            and (not self.categories or any(each in record["categories"] for each in self.categories))
            and (not self.ids or record["id"] in self.ids)
            and (not self.metadata or all(record["metadata"].get(k) == v for k, v in self.metadata.items()))
            and (not self.older_than or datetime.fromisoformat(record["created_at"]) < self.older_than)
        )


def score(record: Original, query: Any) -> float:
    """How near the vector of a memory is to that of a query: from 1 for the same down to 0."""
    return float(1 / (1 + np.square(vector_of(record) - query).sum()))


CREWAI = Framework("crewai", items_of)
