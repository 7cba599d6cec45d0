"""The SQL of a session in each dialect: SQLite, PostgreSQL, MySQL."""

from functools import lru_cache

from ...sql.scripts import Statement
from ...sql.urls import check_supported
from .queries import Queries
from .tables import Tables

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


class PostgresQueries(Queries):
    """The statements for PostgreSQL, and for what speaks its SQL."""

    now = "(CURRENT_TIMESTAMP AT TIME ZONE 'UTC')"
    epoch = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"
    short = 2000
    joined = (
        f"CASE WHEN count(*) > {short} THEN ''"  # a longer history is read in another way
        " ELSE string_agg(id || ',' || message_data, ',' ORDER BY id DESC) END"
    )
    lock = " FOR UPDATE"
    like = "ILIKE"
    each = "json_array_elements(CAST({} AS JSON)) AS each_row(value)"

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        # One statement, one round trip. Taking the session's row first makes those who append to a session
        # wait for each other, so that ids are in the order in which the appends become visible.
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
        # A session that somebody is using is not idle, though it may look so until they commit.
        idle = f"updated_at < {self.seconds_ago('?1')}"
        self.delete_idle_sessions = (
            f'DELETE FROM "{tables.sessions}" WHERE session_id IN (SELECT session_id FROM "{tables.sessions}"'
            f" WHERE {idle} LIMIT ?2 FOR UPDATE SKIP LOCKED) AND {idle} RETURNING 1"
        )
        self._append_described = f"{touched}, {described} {items}"

    def append(
        self, session_id: str, encoded: list[str], metadata: tuple[str | None, ...] | None
    ) -> list[Statement]:
        """All in one statement."""
        if metadata is None:
            return [Statement(self._append, (session_id, encoded), alone=True)]
        return [Statement(self._append_described, (session_id, encoded, *metadata), alone=True)]

    def revise(self, session_id: str, texts: dict[int, str], removed: list[int]) -> list[Statement]:
        """All of them in two round trips."""
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
        """A text as a timestamp."""
        return f"CAST(CAST({text} AS VARCHAR) AS TIMESTAMP)"

    def seconds_ago(self, seconds: str) -> str:
        """Computed by the server's clock."""
        return f"({self.now} - CAST({seconds} AS DOUBLE PRECISION) * INTERVAL '1 second')"


class MySQLQueries(Queries):
    """The statements for MySQL and MariaDB.

    Most are those of the others in other words. MySQL gives no rows back of what it changes: where they are
    needed, the text holds two statements, apart by a semicolon, and one of them is a query.
    """

    now = "UTC_TIMESTAMP()"
    epoch = "UNIX_TIMESTAMP(NOW(6))"
    joined = "GROUP_CONCAT(CONCAT(id, ',', message_data) ORDER BY id DESC SEPARATOR ',')"
    short = 500
    lock = " FOR UPDATE"

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        same = "ON DUPLICATE KEY UPDATE"
        self.touch_session = self.touch_session.split("ON CONFLICT")[0] + f"{same} updated_at = {self.now}"
        self.add_metadata = self.add_metadata.split("ON CONFLICT")[0] + f"{same} session_id = ?1"
        self.set_metadata = (
            self.set_metadata.split("ON CONFLICT")[0]
            + f"{same} user_id = ?2, agent_id = ?3, title = ?4, data = ?5"
        )
        newest = f'FROM "{tables.messages}" WHERE session_id = ?1 ORDER BY id DESC LIMIT 1'
        self.pop_item = f"SELECT id, message_data {newest} FOR UPDATE; DELETE {newest}"
        self.remember_batch = (
            f'SELECT 1 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM "{tables.batches}"'
            " WHERE session_id = ?1 AND batch_id = ?2);"
            f' INSERT INTO "{tables.batches}" (session_id, batch_id, created_at)'
            f" VALUES (?1, ?2, {self.epoch}) {same} session_id = ?1"
        )
        free = f"owner = ?2 OR expires_at < {self.epoch}"
        self.take_lease = (
            f'INSERT INTO "{tables.leases}" (session_id, owner, expires_at)'
            f" VALUES (?1, ?2, {self.epoch} + ?3) {same}"
            f" owner = IF({free}, ?2, owner), expires_at = IF(owner = ?2, {self.epoch} + ?3, expires_at);"
            f' SELECT 1 FROM "{tables.leases}" WHERE session_id = ?1 AND owner = ?2'
        )
        idle = f'FROM "{tables.sessions}" WHERE updated_at < {self.seconds_ago("?1")} LIMIT ?2'
        self.delete_idle_sessions = f"SELECT 1 {idle} FOR UPDATE; DELETE {idle}"
        self.make_session = self.make_session.split("ON CONFLICT")[0] + f"{same} session_id = ?1"
        _say_in_mysql(self)
        _say_in_mysql(self.history)

    def append(
        self, session_id: str, encoded: list[str], metadata: tuple[str | None, ...] | None
    ) -> list[Statement]:
        """The session first, whose row others then wait for, then the items, many in one step."""
        statements = [Statement(self.touch_session, (session_id,))]
        if metadata is not None:
            statements.append(Statement(self.add_metadata, (session_id, *metadata)))
        for start in range(0, len(encoded), _ROWS_AT_ONCE):
            some = encoded[start : start + _ROWS_AT_ONCE]
            rows = ", ".join(f"(?1, ?{number})" for number in range(2, len(some) + 2))
            sql = f"INSERT INTO `{self.tables.messages}` (session_id, message_data) VALUES {rows}"
            statements.append(Statement(sql, (session_id, *some)))
        return statements

    def as_time(self, text: str) -> str:
        """A text as a time."""
        return f"CAST({text} AS DATETIME)"

    def seconds_ago(self, seconds: str) -> str:
        """Computed by the server's clock."""
        return f"(UTC_TIMESTAMP() - INTERVAL {seconds} SECOND)"


def _say_in_mysql(statements: object) -> None:
    for name, sql in list(vars(statements).items()):
        if isinstance(sql, str):
            setattr(statements, name, sql.replace('"', "`").replace("AS VARCHAR", "AS CHAR"))


_DIALECTS: dict[str, type[Queries]] = {
    "postgresql": PostgresQueries,
    "sqlite": SQLiteQueries,
    "mysql": MySQLQueries,
    "mariadb": MySQLQueries,
}


@lru_cache(maxsize=64)
def queries_for(dialect: str, tables: Tables) -> Queries:
    """The statements for these tables in the dialect of a database, made once for each."""
    check_supported(dialect)
    queries = _DIALECTS[dialect](tables)
    if tables.advanced and queries.each is None:
        raise ValueError(f"branches and usage are kept on PostgreSQL and SQLite, not on {dialect}")
    return queries
