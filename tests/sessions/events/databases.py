"""Where logs and summaries live in these tests: a file, a database in memory, and a real PostgreSQL."""

from dataclasses import dataclass
from typing import TypeVar

from recollect.sql.database import SQLStore

StoreT = TypeVar("StoreT", bound=SQLStore)


@dataclass(frozen=True)
class Somewhere:
    """A place that can be opened again and again; one in memory is another each time."""

    url: str
    create_tables: bool = False

    def open(self, kind: type[StoreT]) -> StoreT:
        """A store of this kind."""
        return kind(self.url, create_tables=self.create_tables)

    def arguments(self) -> list[str]:
        """How a process of its own finds it."""
        return [self.url, str(int(self.create_tables))]


def somewhere_of(url: str, create_tables: str) -> Somewhere:
    """The place that `arguments()` names."""
    return Somewhere(url, create_tables == "1")
