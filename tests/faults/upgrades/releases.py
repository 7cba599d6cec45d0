"""The released schemas, and the databases that are kept of them in `released/`.

A release that changes a schema gets a line here, and `python -m tests.faults.upgrades.make NAME` makes what
is kept of it, from the code of its commit.
"""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "released"
_ADVANCED = ("sessions", "advanced", "beside")


@dataclass(frozen=True)
class Release:
    """A schema as it was released: by what name it is kept, and what of `contents.py` it can hold."""

    name: str
    commit: str
    features: tuple[str, ...]
    revision: str | None
    """The newest revision of a database server; none while there were only files."""

    @property
    def file(self) -> Path:
        """A SQLite file, as its release closed it."""
        return FOLDER / f"{self.name}.db.gz"

    @property
    def dump(self) -> Path:
        """What `pg_dump` said of a PostgreSQL."""
        return FOLDER / f"{self.name}.sql.gz"

    def manifest(self, database: str) -> dict[str, Any]:
        """What the release itself read from its database of a kind (`sqlite`, `postgres`)."""
        told: dict[str, Any] = json.loads(gzip.decompress(self.manifest_file(database).read_bytes()))
        return told

    def manifest_file(self, database: str) -> Path:
        """Where that is kept."""
        return FOLDER / f"{self.name}-{database}.json.gz"


RELEASES = (
    Release("embedded-sessions", "fe9ea1e", ("sessions",), None),
    Release("sessions", "1299fc2", ("sessions",), "0001"),
    Release("working-memory", "80262cd", _ADVANCED, "0003"),
    Release("long-term-memory", "2eda7dd", (*_ADVANCED, "memory"), "0005"),
    Release("service", "8099d3b", (*_ADVANCED, "memory", "service"), "0008"),
    Release("faces", "e4f9f0b", (*_ADVANCED, "memory", "service"), "0009"),
    Release("promises", "892396a", (*_ADVANCED, "memory", "service"), "0011"),
    Release("mends", "d242e6b", (*_ADVANCED, "memory", "service"), "0014"),
    Release("finding", "f452dfd", (*_ADVANCED, "memory", "service"), "0019"),
)
ON_SERVERS = tuple(release for release in RELEASES if release.revision is not None)
