"""The SQL of a session, where SQLite says it in its own way."""

from functools import lru_cache

from ...sql.scripts import Statement
from ..sql.queries import Queries
from ..sql.tables import Tables

_ROWS_AT_ONCE = 50


class SQLiteQueries(Queries):
    """The statements for SQLite."""

    now = "CURRENT_TIMESTAMP"
    epoch = "((julianday('now') - 2440587.5) * 86400.0)"
    # As bytes: a row that is not valid text must not keep the others from being read.
    stored = "CAST(message_data AS BLOB)"
    # As one row: with each row that a query steps to, the thread may lose its turn.
    joined = "CAST(group_concat(id || ',' || message_data) AS BLOB)"
    short = 1024
    each = "json_each({})"

    def append(
        self, session_id: str, encoded: list[str], metadata: tuple[str | None, ...] | None
    ) -> list[Statement]:
        """The session first, then the items, many in one step."""
        statements = [Statement(self.touch_session, (session_id,))]
        if metadata is not None:
            statements.append(Statement(self.add_metadata, (session_id, *metadata)))
        for start in range(0, len(encoded), _ROWS_AT_ONCE):
            some = encoded[start : start + _ROWS_AT_ONCE]
            sql = f'INSERT INTO "{self.tables.messages}" (session_id, message_data) VALUES {_rows(len(some))}'
            sql += " RETURNING id"
            statements.append(Statement(sql, (session_id, *some)))
        return statements

    def as_time(self, text: str) -> str:
        """Times are texts."""
        return text

    def seconds_ago(self, seconds: str) -> str:
        """Computed by SQLite's own clock."""
        return f"datetime('now', '-' || {seconds} || ' seconds')"


@lru_cache(maxsize=_ROWS_AT_ONCE)
def _rows(count: int) -> str:
    return ", ".join(f"(?1, ?{number})" for number in range(2, count + 2))


@lru_cache(maxsize=64)
def queries_for(tables: Tables) -> SQLiteQueries:
    """The statements for one pair of tables, made once: SQLite prepares each text but once."""
    return SQLiteQueries(tables)
