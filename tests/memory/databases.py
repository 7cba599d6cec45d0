"""Where memories live in these tests: a database in memory, a file, and a real PostgreSQL."""

from dataclasses import dataclass
from typing import Any

from recollect.memory.store import MemoryStore


@dataclass(frozen=True)
class Place:
    """A place that can be opened again and again; one in memory is another each time."""

    url: str
    create_tables: bool = False

    def open(self, **options: Any) -> MemoryStore:
        """A store there; without workers, unless some are asked for."""
        return MemoryStore(
            self.url, **{"workers": 0, "embedder": None, "create_tables": self.create_tables, **options}
        )
