"""The SQL of a session. The statements are written once; a dialect renders the parts that differ.

Every statement names the session, and the newest item has the highest id. No statement depends on `id` alone
being unique, so the tables may be partitioned by session.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from ...sql.scripts import Statement
from .schema import session_schema
from .tables import Tables


class Reads:
    """The statements that read one history: newest or oldest first, from an end or from a position."""

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
    """The statements for one pair of tables. A subclass is a dialect."""

    now: str
    """The current time, as a timestamp column holds it."""

    epoch: str
    """The current time in seconds since 1970."""

    text_type: str = "VARCHAR"
    """The type that CAST turns a parameter into a text with."""

    stored: str = "message_data"
    """The expression that selects the stored text of an item."""

    joined: str
    """The expression that joins all items of a subquery `newest` into one text: id,item,id,item,…"""

    max_joined: int
    """The largest number of items that is read as one joined text."""

    lock: str = ""
    """The clause that locks a selected row of a session until the transaction ends."""

    combines: bool = False
    """Whether `WITH` clauses may change rows, so that several changes are one statement."""

    like: str = "LIKE"
    """The operator that compares with a pattern and ignores the case of ASCII letters."""

    each: str | None = None
    """The elements of a JSON array {} as rows with a column `value`. `None`: the dialect has no branches."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.schema = session_schema(tables)
        self._render_history(self.quote(tables.sessions), self.quote(tables.messages))
        self._render_metadata(self.quote(tables.metadata))
        self._render_batches(self.quote(tables.batches))
        self._render_notes(self.quote(tables.notes))
        leases = self.quote(tables.leases)
        self.take_lease = self.render_take_lease(leases)
        self.drop_lease = f"DELETE FROM {leases} WHERE session_id = ?1 AND owner = ?2"
        self._render_catalog(self.quote(tables.sessions), self.quote(tables.messages))

    def _render_history(self, sessions: str, messages: str) -> None:
        self.history = self.reads(f"FROM {messages} WHERE session_id = ?1", position="id", scope=1)
        session = {"session_id": "?1", "created_at": self.now, "updated_at": self.now}
        self.make_session = self.upsert(sessions, session, key=("session_id",))
        self.lock_session = f"SELECT 1 FROM {sessions} WHERE session_id = ?1{self.lock}"
        self.touch_session = self.upsert(sessions, session, key=("session_id",), update=("updated_at",))
        self.pop_item = self.render_pop_item(messages)
        self.delete_items_after = f"DELETE FROM {messages} WHERE session_id = ?1 AND id > ?2"
        self.change_item = f"UPDATE {messages} SET message_data = ?3 WHERE session_id = ?1 AND id = ?2"
        self.delete_item = f"DELETE FROM {messages} WHERE session_id = ?1 AND id = ?2"
        self.delete_session = f"DELETE FROM {sessions} WHERE session_id = ?1"

    def _render_metadata(self, metadata: str) -> None:
        row = {"session_id": "?1", "user_id": "?2", "agent_id": "?3", "title": "?4", "data": "?5"}
        values = ("user_id", "agent_id", "title", "data")
        self.get_metadata = f"SELECT user_id, agent_id, title, data FROM {metadata} WHERE session_id = ?1"
        self.add_metadata = self.upsert(metadata, row, key=("session_id",))
        self.set_metadata = self.upsert(metadata, row, key=("session_id",), update=values)

    def _render_batches(self, batches: str) -> None:
        batch = {"session_id": "?1", "batch_id": "?2", "created_at": self.epoch}
        self.remember_batch = self.insert_if_new(batches, batch, key=("session_id", "batch_id"))
        self.forget_old_batches = (
            f"DELETE FROM {batches} WHERE session_id = ?1 AND created_at < {self.epoch} - 86400"
        )

    def _render_notes(self, notes: str) -> None:
        self.get_note = f"SELECT version, data FROM {notes} WHERE session_id = ?1 AND note_key = ?2"
        self.add_note = f"INSERT INTO {notes} (session_id, note_key, version, data) VALUES (?1, ?2, 1, ?3)"
        self.empty_notes = f"UPDATE {notes} SET version = version + 1, data = '{{}}' WHERE session_id = ?1"
        self.change_note = (
            f"UPDATE {notes} SET version = version + 1, data = ?3 WHERE session_id = ?1 AND note_key = ?2"
        )

    def _render_catalog(self, sessions: str, messages: str) -> None:
        metadata = self.quote(self.tables.metadata)
        self.list_sessions = (
            "SELECT s.session_id, s.created_at, s.updated_at,"
            f" (SELECT count(*) FROM {messages} m WHERE m.session_id = s.session_id),"
            " d.user_id, d.agent_id, d.title, d.data"
            f" FROM {sessions} s LEFT JOIN {metadata} d ON d.session_id = s.session_id"
            f" WHERE ({self._is_null('?1')} OR d.user_id = ?1)"
            f" AND ({self._is_null('?2')} OR d.agent_id = ?2)"
            f" AND ({self._is_null('?3')} OR (s.updated_at, s.session_id) < ({self.as_time('?3')}, ?4))"
            " ORDER BY s.updated_at DESC, s.session_id DESC LIMIT ?5"
        )
        self.delete_idle_sessions = self.render_delete_idle(sessions)

    def _is_null(self, parameter: str) -> str:
        return f"CAST({parameter} AS {self.text_type}) IS NULL"

    def reads(self, source: str, position: str, scope: int) -> "Reads":
        """The statements that read the items of a source, which uses the first `scope` parameters."""
        return Reads(source, position, scope, self.stored, self.joined)

    def revise(self, session_id: str, texts: dict[int, str], removed: list[int]) -> list[Statement]:
        """The statements that replace the texts of items by id, and remove other items."""
        return [
            *(Statement(self.change_item, (session_id, row_id, text)) for row_id, text in texts.items()),
            *(Statement(self.delete_item, (session_id, row_id)) for row_id in removed),
        ]

    # --- rendered by each dialect; the defaults are shared by SQLite and PostgreSQL ---

    def quote(self, name: str) -> str:
        """The name of a table as an identifier."""
        return f'"{name}"'

    def upsert(
        self, table: str, values: Mapping[str, str], key: tuple[str, ...], update: tuple[str, ...] = ()
    ) -> str:
        """Insert a row. If its key exists, set the columns of `update` to the new values."""
        updates = ", ".join(f"{column} = excluded.{column}" for column in update)
        action = f"DO UPDATE SET {updates}" if update else "DO NOTHING"
        return f"{render_insert(table, values)} ON CONFLICT ({', '.join(key)}) {action}"

    def insert_if_new(self, table: str, values: Mapping[str, str], key: tuple[str, ...]) -> str:
        """Insert a row unless its key exists. Returns one row if it was inserted, else none."""
        return f"{self.upsert(table, values, key)} RETURNING 1"

    def render_pop_item(self, messages: str) -> str:
        """Remove the newest item. Returns its id and its text."""
        return (
            f"DELETE FROM {messages} WHERE session_id = ?1 AND id ="
            f" (SELECT id FROM {messages} WHERE session_id = ?1 ORDER BY id DESC LIMIT 1)"
            f" RETURNING id, {self.stored}"
        )

    def render_take_lease(self, leases: str) -> str:
        """Take or extend the lease for an owner and a number of seconds.

        Returns one row on success. Returns none while another owner's lease has not expired.
        """
        lease = {"session_id": "?1", "owner": "?2", "expires_at": f"{self.epoch} + ?3"}
        taken = self.upsert(leases, lease, key=("session_id",), update=("owner", "expires_at"))
        is_free = f"{leases}.owner = excluded.owner OR {leases}.expires_at < {self.epoch}"
        return f"{taken} WHERE {is_free} RETURNING 1"

    def render_delete_idle(self, sessions: str) -> str:
        """Delete some sessions that were not updated for a number of seconds. Returns a row for each."""
        return (
            f"DELETE FROM {sessions} WHERE session_id IN (SELECT session_id FROM {sessions}"
            f" WHERE updated_at < {self.seconds_ago('?1')} LIMIT ?2) RETURNING 1"
        )

    @abstractmethod
    def append(
        self, session_id: str, encoded: list[str], metadata: tuple[str | None, ...] | None
    ) -> list[Statement]:
        """The statements that touch the session, add the metadata if it has none, and append the items.

        Those that append return the ids of the items, except on MySQL.
        """

    @abstractmethod
    def as_time(self, text: str) -> str:
        """A text converted to a timestamp."""

    @abstractmethod
    def seconds_ago(self, seconds: str) -> str:
        """The timestamp of that many seconds ago, by the clock of the database."""


def render_insert(table: str, values: Mapping[str, str]) -> str:
    """An INSERT of one row, from SQL expressions by column."""
    return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(values.values())})"
