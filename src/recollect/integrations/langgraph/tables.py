"""The tables of checkpoints in a database."""

from collections.abc import Sequence
from typing import Any, TypeVar

from ...sql.database import SQLStore
from ...sql.scripts import Decode, MakeScript
from .schema import CheckpointSchema

T = TypeVar("T")


class CheckpointTables(SQLStore):
    """Runs scripts and queries on the tables of checkpoints, which are created when needed."""

    schema = CheckpointSchema()

    @property
    def is_postgresql(self) -> bool:
        """Whether it is a PostgreSQL server, where each statement costs a round trip."""
        return self._database.dialect == "postgresql"

    async def write(self, make_script: MakeScript[T]) -> T:
        """Run a script in a transaction of its own and return its result."""
        return await self._write(make_script)

    async def fetch(self, sql: str, parameters: Sequence[Any], decode: Decode[T]) -> T:
        """Run one query and return what `decode` makes of its rows."""
        return await self._fetch(sql, parameters, decode)
