"""The SQL of a session. Every statement names the session, and the newest item is the one of highest id."""

from functools import lru_cache

from .schema import Tables


class Queries:
    """The statements for one pair of tables."""

    def __init__(self, tables: Tables) -> None:
        sessions, messages = f'"{tables.sessions}"', f'"{tables.messages}"'
        metadata, batches, leases = f'"{tables.metadata}"', f'"{tables.batches}"', f'"{tables.leases}"'
        # As bytes: a row that is not valid text must not keep the others from being read.
        item_rows = f"SELECT id, CAST(message_data AS BLOB) FROM {messages} WHERE session_id = ?"

        self.all_items = f"{item_rows} ORDER BY id"
        # Short histories come as one row: each step of a query may cost this thread its turn.
        self.newest_joined = (
            "SELECT count(*), CAST(group_concat(id || ',' || message_data) AS BLOB) FROM"
            f" (SELECT id, message_data FROM {messages} WHERE session_id = ? ORDER BY id DESC LIMIT ?)"
        )
        self.newest_items = f"{item_rows} ORDER BY id DESC LIMIT ?"
        self.items_after = f"{item_rows} AND id > ? ORDER BY id LIMIT ?"
        self.items_before = f"{item_rows} AND id < ? ORDER BY id DESC LIMIT ?"

        self.touch_session = (
            f"INSERT INTO {sessions} (session_id) VALUES (?)"
            " ON CONFLICT (session_id) DO UPDATE SET updated_at = CURRENT_TIMESTAMP"
        )
        self._append = f"INSERT INTO {messages} (session_id, message_data) VALUES"
        self.pop_item = (
            f"DELETE FROM {messages} WHERE id ="
            f" (SELECT id FROM {messages} WHERE session_id = ? ORDER BY id DESC LIMIT 1)"
            " RETURNING id, CAST(message_data AS BLOB)"
        )
        self.delete_items_after = f"DELETE FROM {messages} WHERE session_id = ? AND id > ?"
        self.delete_session = f"DELETE FROM {sessions} WHERE session_id = ?"

        self.remember_batch = (
            f"INSERT INTO {batches} (session_id, batch_id) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1"
        )
        self.forget_old_batches = (
            f"DELETE FROM {batches} WHERE session_id = ? AND created_at < datetime('now', '-1 day')"
        )

        self.get_metadata = f"SELECT user_id, agent_id, title, data FROM {metadata} WHERE session_id = ?"
        insert_metadata = (
            f"INSERT INTO {metadata} (session_id, user_id, agent_id, title, data) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (session_id)"
        )
        self.add_metadata = f"{insert_metadata} DO NOTHING"
        self.set_metadata = (
            f"{insert_metadata} DO UPDATE SET user_id = excluded.user_id, agent_id = excluded.agent_id,"
            " title = excluded.title, data = excluded.data"
        )

        self.take_lease = (
            f"INSERT INTO {leases} (session_id, owner, expires_at) VALUES (?1, ?2, ?3)"
            " ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at"
            f" WHERE {leases}.owner = excluded.owner OR {leases}.expires_at < ?4 RETURNING 1"
        )
        self.drop_lease = f"DELETE FROM {leases} WHERE session_id = ? AND owner = ?"

        self.list_sessions = (
            "SELECT s.session_id, s.created_at, s.updated_at,"
            f" (SELECT count(*) FROM {messages} m WHERE m.session_id = s.session_id),"
            " d.user_id, d.agent_id, d.title, d.data"
            f" FROM {sessions} s LEFT JOIN {metadata} d ON d.session_id = s.session_id"
            " WHERE (?1 IS NULL OR d.user_id = ?1) AND (?2 IS NULL OR d.agent_id = ?2)"
            " AND (?3 IS NULL OR (s.updated_at, s.session_id) < (?3, ?4))"
            " ORDER BY s.updated_at DESC, s.session_id DESC LIMIT ?5"
        )
        self.delete_idle_sessions = (
            f"DELETE FROM {sessions} WHERE session_id IN"
            f" (SELECT session_id FROM {sessions} WHERE updated_at < datetime('now', ?) LIMIT ?)"
            " RETURNING 1"
        )

    def append_items(self, count: int) -> str:
        """Insert so many rows in one step. Parameters: the session, then the items."""
        return f"{self._append} {_value_rows(count)}"


@lru_cache(maxsize=64)
def _value_rows(count: int) -> str:
    return ", ".join(f"(?1, ?{number})" for number in range(2, count + 2))


@lru_cache(maxsize=64)
def queries_for(tables: Tables) -> Queries:
    """The statements for one pair of tables, made once: SQLite prepares each text but once."""
    return Queries(tables)
