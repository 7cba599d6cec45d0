"""The SQL of a session, in the words that SQLite and PostgreSQL share.

Every statement names the session, and the newest item is the one of highest id. Nothing depends on `id`
alone being unique, so the tables may be partitioned by session.
"""

from abc import ABC, abstractmethod

from ...sql.scripts import Statement
from .schema import session_schema
from .tables import Tables


class Reads:
    """The statements that read one history, newest or oldest first, from its end or from a position."""

    def __init__(self, source: str, position: str, scope: int, stored: str, joined: str) -> None:
        rows = f"SELECT {position}, {stored} {source}"
        first, second = f"?{scope + 1}", f"?{scope + 2}"
        self.all = f"{rows} ORDER BY {position}"
        self.newest = f"{rows} ORDER BY {position} DESC LIMIT {first}"
        self.after = f"{rows} AND {position} > {first} ORDER BY {position} LIMIT {second}"
        self.before = f"{rows} AND {position} < {first} ORDER BY {position} DESC LIMIT {second}"
        in_one_row = f"SELECT count(*), {joined} FROM (SELECT {position} AS id, message_data {source}"
        self.joined = f"{in_one_row} ORDER BY {position} DESC LIMIT {first}) AS newest"
        self.joined_after = (
            f"{in_one_row} AND {position} > {first} ORDER BY {position} LIMIT {second}) AS newest"
        )


class Queries(ABC):
    """The statements for one pair of tables; a database says what differs."""

    now: str
    """The time, as the columns hold it."""

    epoch: str
    """The time, in seconds."""

    stored: str = "message_data"
    """How the stored text of an item is selected."""

    joined: str
    """All items of a query named `newest`, as one text: id,item,id,item,…"""

    short: int
    """Histories of so many items are read in one piece."""

    lock: str = ""
    """What keeps others from changing a session whose row was selected."""

    like: str = "LIKE"
    """What compares with a pattern, whatever the case of ASCII letters."""

    each: str | None = None
    """The elements of a JSON array {} as rows with a column `value`; `None` where there are no branches."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.schema = session_schema(tables)
        self._say_history(f'"{tables.sessions}"', f'"{tables.messages}"')
        self._say_metadata(f'"{tables.metadata}"')
        self._say_batches_and_notes(f'"{tables.batches}"', f'"{tables.notes}"')
        self._say_leases(f'"{tables.leases}"')
        self._say_catalog(f'"{tables.sessions}"', f'"{tables.messages}"', f'"{tables.metadata}"')

    def _say_history(self, sessions: str, messages: str) -> None:
        self.history = self.reads(f"FROM {messages} WHERE session_id = ?1", position="id", scope=1)
        self.make_session = (
            f"INSERT INTO {sessions} (session_id, created_at, updated_at) VALUES (?1, {self.now}, {self.now})"
            " ON CONFLICT (session_id) DO NOTHING"
        )
        self.lock_session = f"SELECT 1 FROM {sessions} WHERE session_id = ?1{self.lock}"
        self.touch_session = (
            f"INSERT INTO {sessions} (session_id, created_at, updated_at) VALUES (?1, {self.now}, {self.now})"
            " ON CONFLICT (session_id) DO UPDATE SET updated_at = excluded.updated_at"
        )
        self.pop_item = (
            f"DELETE FROM {messages} WHERE session_id = ?1 AND id ="
            f" (SELECT id FROM {messages} WHERE session_id = ?1 ORDER BY id DESC LIMIT 1)"
            f" RETURNING id, {self.stored}"
        )
        self.delete_items_after = f"DELETE FROM {messages} WHERE session_id = ?1 AND id > ?2"
        self.change_item = f"UPDATE {messages} SET message_data = ?3 WHERE session_id = ?1 AND id = ?2"
        self.delete_item = f"DELETE FROM {messages} WHERE session_id = ?1 AND id = ?2"
        self.delete_session = f"DELETE FROM {sessions} WHERE session_id = ?1"

    def _say_batches_and_notes(self, batches: str, notes: str) -> None:
        self.remember_batch = (
            f"INSERT INTO {batches} (session_id, batch_id, created_at) VALUES (?1, ?2, {self.epoch})"
            " ON CONFLICT (session_id, batch_id) DO NOTHING RETURNING 1"
        )
        self.forget_old_batches = (
            f"DELETE FROM {batches} WHERE session_id = ?1 AND created_at < {self.epoch} - 86400"
        )
        self.get_note = f"SELECT version, data FROM {notes} WHERE session_id = ?1 AND note_key = ?2"
        self.add_note = f"INSERT INTO {notes} (session_id, note_key, version, data) VALUES (?1, ?2, 1, ?3)"
        self.empty_notes = f"UPDATE {notes} SET version = version + 1, data = '{{}}' WHERE session_id = ?1"
        self.change_note = (
            f"UPDATE {notes} SET version = version + 1, data = ?3 WHERE session_id = ?1 AND note_key = ?2"
        )

    def _say_metadata(self, metadata: str) -> None:
        self.get_metadata = f"SELECT user_id, agent_id, title, data FROM {metadata} WHERE session_id = ?1"
        insert_metadata = (
            f"INSERT INTO {metadata} (session_id, user_id, agent_id, title, data) VALUES (?1, ?2, ?3, ?4, ?5)"
            " ON CONFLICT (session_id)"
        )
        self.add_metadata = f"{insert_metadata} DO NOTHING"
        self.set_metadata = (
            f"{insert_metadata} DO UPDATE SET user_id = excluded.user_id, agent_id = excluded.agent_id,"
            " title = excluded.title, data = excluded.data"
        )

    def _say_leases(self, leases: str) -> None:
        self.take_lease = (
            f"INSERT INTO {leases} (session_id, owner, expires_at) VALUES (?1, ?2, {self.epoch} + ?3)"
            " ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at"
            f" WHERE {leases}.owner = excluded.owner OR {leases}.expires_at < {self.epoch} RETURNING 1"
        )
        self.drop_lease = f"DELETE FROM {leases} WHERE session_id = ?1 AND owner = ?2"

    def _say_catalog(self, sessions: str, messages: str, metadata: str) -> None:
        self.list_sessions = (
            "SELECT s.session_id, s.created_at, s.updated_at,"
            f" (SELECT count(*) FROM {messages} m WHERE m.session_id = s.session_id),"
            " d.user_id, d.agent_id, d.title, d.data"
            f" FROM {sessions} s LEFT JOIN {metadata} d ON d.session_id = s.session_id"
            " WHERE (CAST(?1 AS VARCHAR) IS NULL OR d.user_id = ?1)"
            " AND (CAST(?2 AS VARCHAR) IS NULL OR d.agent_id = ?2)"
            f" AND (CAST(?3 AS VARCHAR) IS NULL OR (s.updated_at, s.session_id) < ({self.as_time('?3')}, ?4))"
            " ORDER BY s.updated_at DESC, s.session_id DESC LIMIT ?5"
        )
        self.delete_idle_sessions = (
            f"DELETE FROM {sessions} WHERE session_id IN (SELECT session_id FROM {sessions}"
            f" WHERE updated_at < {self.seconds_ago('?1')} LIMIT ?2) RETURNING 1"
        )

    def reads(self, source: str, position: str, scope: int) -> "Reads":
        """The statements that read the items of a source, which names its first `scope` parameters."""
        return Reads(source, position, scope, self.stored, self.joined)

    @abstractmethod
    def append(
        self, session_id: str, encoded: list[str], metadata: tuple[str | None, ...] | None
    ) -> list[Statement]:
        """The statements that touch the session, add the metadata if it has none, and append the items.

        Those that append give the ids back.
        """

    def revise(self, session_id: str, texts: dict[int, str], removed: list[int]) -> list[Statement]:
        """The statements that give items of these ids another text, and remove others."""
        return [
            *(Statement(self.change_item, (session_id, row_id, text)) for row_id, text in texts.items()),
            *(Statement(self.delete_item, (session_id, row_id)) for row_id in removed),
        ]

    @abstractmethod
    def as_time(self, text: str) -> str:
        """A text as the columns hold a time."""

    @abstractmethod
    def seconds_ago(self, seconds: str) -> str:
        """The time so many seconds ago, as the columns hold it."""
