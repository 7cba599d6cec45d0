"""The SQL of a session in each dialect: SQLite, PostgreSQL, and MySQL with MariaDB."""

from collections.abc import Mapping
from functools import lru_cache

from ...sql.scripts import Statement
from ...sql.urls import check_supported
from .queries import Queries, render_insert
from .tables import Tables

_ROWS_PER_INSERT = 50


class SQLiteQueries(Queries):
    """The statements for SQLite."""

    now = "CURRENT_TIMESTAMP"
    epoch = "((julianday('now') - 2440587.5) * 86400.0)"
    # As bytes: a row that is not valid text must not make the others unreadable.
    stored = "CAST(message_data AS BLOB)"
    # As one row: the thread may lose the interpreter's lock at each row that a query steps to.
    joined = "CAST(group_concat(id || ',' || message_data) AS BLOB)"
    max_joined = 1024
    each = "json_each({})"

    def append(
        self, session_id: str, encoded: list[str], metadata: tuple[str | None, ...] | None
    ) -> list[Statement]:
        """First the session, then the items, many in one statement."""
        return _append_in_steps(self, session_id, encoded, metadata, ending=" RETURNING id")

    def as_time(self, text: str) -> str:
        """Timestamps are texts in SQLite."""
        return text

    def seconds_ago(self, seconds: str) -> str:
        """The timestamp of that many seconds ago, by the clock of the machine."""
        return f"datetime('now', '-' || {seconds} || ' seconds')"


class PostgresQueries(Queries):
    """The statements for PostgreSQL, and for databases that speak its SQL."""

    combines = True
    now = "(CURRENT_TIMESTAMP AT TIME ZONE 'UTC')"
    epoch = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"
    max_joined = 2000
    joined = (
        f"CASE WHEN count(*) > {max_joined} THEN ''"  # a longer history is read row by row
        " ELSE string_agg(id || ',' || message_data, ',' ORDER BY id DESC) END"
    )
    lock = " FOR UPDATE"
    like = "ILIKE"
    each = "json_array_elements(CAST({} AS JSON)) AS each_row(value)"

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        # One statement, one round trip. Touching the session first locks its row, so appends to a session
        # wait for each other, and the order of ids is the order in which the appends become visible.
        touched = f"WITH touched AS ({self.touch_session} RETURNING session_id)"
        items = (
            f'INSERT INTO "{tables.messages}" (session_id, message_data, created_at)'
            f" SELECT touched.session_id, item.data, {self.now} FROM touched"
            " CROSS JOIN unnest(CAST(?2 AS TEXT[])) WITH ORDINALITY AS item(data, number)"
            " ORDER BY item.number RETURNING id"
        )
        described = (
            f'described AS (INSERT INTO "{tables.metadata}" (session_id, user_id, agent_id, title, data)'
            " SELECT touched.session_id, CAST(?3 AS TEXT), CAST(?4 AS TEXT), CAST(?5 AS TEXT),"
            " CAST(?6 AS TEXT)"
            " FROM touched ON CONFLICT (session_id) DO NOTHING)"
        )
        self._append = f"{touched} {items}"
        self._append_described = f"{touched}, {described} {items}"

    def render_delete_idle(self, sessions: str) -> str:
        """Delete some idle sessions. Returns a row for each.

        A session that a transaction has locked is in use. Its row may look idle until that transaction
        commits, so locked rows are skipped.
        """
        idle = f"updated_at < {self.seconds_ago('?1')}"
        return (
            f"DELETE FROM {sessions} WHERE session_id IN (SELECT session_id FROM {sessions}"
            f" WHERE {idle} LIMIT ?2 FOR UPDATE SKIP LOCKED) AND {idle} RETURNING 1"
        )

    def append(
        self, session_id: str, encoded: list[str], metadata: tuple[str | None, ...] | None
    ) -> list[Statement]:
        """Everything in one statement."""
        if metadata is None:
            return [Statement(self._append, (session_id, encoded), alone=True)]
        return [Statement(self._append_described, (session_id, encoded, *metadata), alone=True)]

    def revise(self, session_id: str, texts: dict[int, str], removed: list[int]) -> list[Statement]:
        """All changes in two round trips."""
        messages = f'"{self.tables.messages}"'
        update = (
            f"UPDATE {messages} SET message_data = revised.data"
            " FROM unnest(CAST(?2 AS BIGINT[]), CAST(?3 AS TEXT[])) AS revised(id, data)"
            f" WHERE session_id = ?1 AND {messages}.id = revised.id"
        )
        delete = f"DELETE FROM {messages} WHERE session_id = ?1 AND id = ANY(CAST(?2 AS BIGINT[]))"
        return [
            Statement(update, (session_id, list(texts), list(texts.values()))),
            Statement(delete, (session_id, removed)),
        ]

    def as_time(self, text: str) -> str:
        """A text converted to a timestamp."""
        return f"CAST(CAST({text} AS VARCHAR) AS TIMESTAMP)"

    def seconds_ago(self, seconds: str) -> str:
        """The timestamp of that many seconds ago, by the clock of the server."""
        return f"({self.now} - CAST({seconds} AS DOUBLE PRECISION) * INTERVAL '1 second')"


class MySQLQueries(Queries):
    """The statements for MySQL and MariaDB.

    MySQL returns no rows from a statement that changes rows. Where they are needed, the text holds two
    statements with a semicolon between them, and one of the two is a query.
    """

    now = "UTC_TIMESTAMP()"
    epoch = "UNIX_TIMESTAMP(NOW(6))"
    text_type = "CHAR"
    joined = "GROUP_CONCAT(CONCAT(id, ',', message_data) ORDER BY id DESC SEPARATOR ',')"
    max_joined = 500
    lock = " FOR UPDATE"

    def quote(self, name: str) -> str:
        """The name of a table as an identifier."""
        return f"`{name}`"

    def upsert(
        self, table: str, values: Mapping[str, str], key: tuple[str, ...], update: tuple[str, ...] = ()
    ) -> str:
        """Insert a row. If its key exists, set the columns of `update` to the new values."""
        # MySQL has no DO NOTHING: setting a column of the key to its own value changes nothing.
        updates = ", ".join(f"{column} = {values[column]}" for column in update or key[:1])
        return f"{render_insert(table, values)} ON DUPLICATE KEY UPDATE {updates}"

    def insert_if_new(self, table: str, values: Mapping[str, str], key: tuple[str, ...]) -> str:
        """Insert a row unless its key exists. Returns one row if it was inserted, else none."""
        same_key = " AND ".join(f"{column} = {values[column]}" for column in key)
        is_new = f"SELECT 1 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM {table} WHERE {same_key})"
        return f"{is_new}; {self.upsert(table, values, key)}"

    def render_pop_item(self, messages: str) -> str:
        """Remove the newest item. Returns its id and its text."""
        newest = f"FROM {messages} WHERE session_id = ?1 ORDER BY id DESC LIMIT 1"
        return f"SELECT id, message_data {newest} FOR UPDATE; DELETE {newest}"

    def render_take_lease(self, leases: str) -> str:
        """Take or extend the lease. Returns one row if the owner has it then."""
        lease = {"session_id": "?1", "owner": "?2", "expires_at": f"{self.epoch} + ?3"}
        # MySQL assigns from left to right: the second assignment sees the owner that the first has set.
        return (
            f"{render_insert(leases, lease)} ON DUPLICATE KEY UPDATE"
            f" owner = IF(owner = ?2 OR expires_at < {self.epoch}, ?2, owner),"
            f" expires_at = IF(owner = ?2, {lease['expires_at']}, expires_at);"
            f" SELECT 1 FROM {leases} WHERE session_id = ?1 AND owner = ?2"
        )

    def render_delete_idle(self, sessions: str) -> str:
        """Delete some idle sessions. Returns a row for each."""
        idle = f"FROM {sessions} WHERE updated_at < {self.seconds_ago('?1')} LIMIT ?2"
        return f"SELECT 1 {idle} FOR UPDATE; DELETE {idle}"

    def append(
        self, session_id: str, encoded: list[str], metadata: tuple[str | None, ...] | None
    ) -> list[Statement]:
        """First the session, whose locked row makes other appends wait, then the items."""
        return _append_in_steps(self, session_id, encoded, metadata)

    def as_time(self, text: str) -> str:
        """A text converted to a timestamp."""
        return f"CAST({text} AS DATETIME)"

    def seconds_ago(self, seconds: str) -> str:
        """The timestamp of that many seconds ago, by the clock of the server."""
        return f"(UTC_TIMESTAMP() - INTERVAL {seconds} SECOND)"


def _append_in_steps(
    queries: Queries,
    session_id: str,
    encoded: list[str],
    metadata: tuple[str | None, ...] | None,
    ending: str = "",
) -> list[Statement]:
    statements = [Statement(queries.touch_session, (session_id,))]
    if metadata is not None:
        statements.append(Statement(queries.add_metadata, (session_id, *metadata)))
    insert = f"INSERT INTO {queries.quote(queries.tables.messages)} (session_id, message_data) VALUES"
    for start in range(0, len(encoded), _ROWS_PER_INSERT):
        some = encoded[start : start + _ROWS_PER_INSERT]
        statements.append(Statement(f"{insert} {_rows(len(some))}{ending}", (session_id, *some)))
    return statements


@lru_cache(maxsize=_ROWS_PER_INSERT)
def _rows(count: int) -> str:
    return ", ".join(f"(?1, ?{number})" for number in range(2, count + 2))


_DIALECTS: dict[str, type[Queries]] = {
    "postgresql": PostgresQueries,
    "sqlite": SQLiteQueries,
    "mysql": MySQLQueries,
    "mariadb": MySQLQueries,
}


@lru_cache(maxsize=64)
def queries_for(dialect: str, tables: Tables) -> Queries:
    """The statements for these tables in a dialect, cached: SQLite prepares each text only once."""
    check_supported(dialect)
    queries = _DIALECTS[dialect](tables)
    if tables.advanced and queries.each is None:
        raise ValueError(f"branches and usage need PostgreSQL or SQLite, not {dialect}")
    return queries
