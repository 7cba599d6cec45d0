"""The SQL of a session, where PostgreSQL says it in its own way."""

from functools import lru_cache

from ..sql.queries import Queries
from ..sql.scripts import Statement
from ..sql.tables import Tables


class PostgresQueries(Queries):
    """The statements for PostgreSQL, and for what speaks its SQL."""

    now = "(CURRENT_TIMESTAMP AT TIME ZONE 'UTC')"
    epoch = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"
    joined = "string_agg(id || ',' || message_data, ',' ORDER BY id DESC)"
    short = 2000
    lock = " FOR UPDATE"

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        # One statement, one round trip. Taking the session's row first makes those who append to a session
        # wait for each other, so that ids are in the order in which the appends become visible.
        touched = f"WITH touched AS ({self.touch_session} RETURNING session_id)"
        items = (
            f'INSERT INTO "{tables.messages}" (session_id, message_data, created_at)'
            f" SELECT touched.session_id, item.data, {self.now} FROM touched"
            " CROSS JOIN unnest(CAST(?2 AS TEXT[])) WITH ORDINALITY AS item(data, number)"
            " ORDER BY item.number"
        )
        described = (
            f'described AS (INSERT INTO "{tables.metadata}" (session_id, user_id, agent_id, title, data)'
            " SELECT touched.session_id, CAST(?3 AS TEXT), CAST(?4 AS TEXT), CAST(?5 AS TEXT),"
            " CAST(?6 AS TEXT)"
            " FROM touched ON CONFLICT (session_id) DO NOTHING)"
        )
        self._append = f"{touched} {items}"
        self._append_described = f"{touched}, {described} {items}"

    def append(
        self, session_id: str, encoded: list[str], metadata: tuple[str | None, ...] | None
    ) -> list[Statement]:
        """All in one statement."""
        if metadata is None:
            return [Statement(self._append, (session_id, encoded), alone=True)]
        return [Statement(self._append_described, (session_id, encoded, *metadata), alone=True)]

    def as_time(self, text: str) -> str:
        """A text as a timestamp."""
        return f"CAST(CAST({text} AS VARCHAR) AS TIMESTAMP)"

    def seconds_ago(self, seconds: str) -> str:
        """Computed by the server's clock."""
        return f"({self.now} - CAST({seconds} AS DOUBLE PRECISION) * INTERVAL '1 second')"


@lru_cache(maxsize=64)
def postgres_queries_for(tables: Tables) -> PostgresQueries:
    """The statements for one pair of tables, made once."""
    return PostgresQueries(tables)
