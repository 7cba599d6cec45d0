"""The tables of sessions.

The first tables are those of the Agents SDK: its files open here, and ours open there. Our own tables stand
beside them, under names that start with `recollect_`.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from ...errors import SchemaMismatchError
from ...sql.description import (
    Column,
    Index,
    Table,
    create_indexes_in_sqlite,
    create_tables_in_sqlite,
)
from ...sql.schema import Schema
from ...sql.scripts import Script, Statement
from .tables import Tables

# The columns that the SDK's tables have in all its versions.
_STRUCTURE_COLUMNS = {
    "session_id",
    "message_id",
    "branch_id",
    "message_type",
    "sequence_number",
    "user_turn_number",
    "branch_turn_number",
    "tool_name",
    "created_at",
}
_USAGE_COLUMNS = {"session_id", "branch_id", "user_turn_number", "requests", "input_tokens", "output_tokens"}
_ID = Column("id", "autoincrement")
_COUNTS = ("requests", "input_tokens", "output_tokens", "total_tokens")


# --- the tables ---


def _time(name: str) -> Column:
    return Column(name, "sdk_timestamp", default="CURRENT_TIMESTAMP")


def _session_id(tables: Tables) -> Column:
    return Column("session_id", "identifier", parent=f"{tables.sessions}.session_id")


def sessions_table(tables: Tables) -> Table:
    """The SDK's table of sessions."""
    return Table(
        tables.sessions,
        (Column("session_id", "identifier"), _time("created_at"), _time("updated_at")),
        key=("session_id",),
        key_in_column=True,
    )


def messages_table(tables: Tables) -> Table:
    """The SDK's table of items, in the order of their ids."""
    return Table(
        tables.messages,
        (_ID, _session_id(tables), Column("message_data", "long_text"), _time("created_at")),
        key=("id",),
        named=(Index(f"recollect_{tables.messages}_by_session", ("session_id", "id")),),
    )


def metadata_table(tables: Tables) -> Table:
    """The user and the agent of a session, its title, and other data."""
    by_user = f"{tables.metadata}_by_user"
    return Table(
        tables.metadata,
        (
            _session_id(tables),
            Column("user_id", "identifier", required=False),
            Column("agent_id", "identifier", required=False),
            Column("title", "long_text", required=False),
            Column("data", "long_text", sqlite_default="'{}'"),
        ),
        key=("session_id",),
        named=(
            Index(by_user, ("user_id", "agent_id"), database="sqlite"),
            # By hash, because other indexes of PostgreSQL refuse texts of more than about 2,700 bytes.
            Index(by_user, ("user_id",), method="hash", database="server"),
        ),
    )


def batches_table(tables: Tables) -> Table:
    """The ids of appended batches: a batch is appended once. Times are seconds since 1970."""
    return Table(
        tables.batches,
        (_session_id(tables), Column("batch_id", "identifier"), Column("created_at", "real")),
        key=("session_id", "batch_id"),
    )


def leases_table(tables: Tables) -> Table:
    """The owner of the lease on a session, and the time at which it expires, in seconds since 1970."""
    return Table(
        tables.leases,
        (Column("session_id", "identifier"), Column("owner", "identifier"), Column("expires_at", "real")),
        key=("session_id",),
    )


def notes_table(tables: Tables) -> Table:
    """Notes beside a history, for example how much of it a summary covers."""
    return Table(
        tables.notes,
        (
            _session_id(tables),
            Column("note_key", "identifier"),
            Column("version", "int32"),
            Column("data", "long_text"),
        ),
        key=("session_id", "note_key"),
    )


def structure_table(tables: Tables) -> Table:
    """The SDK's table of the branches that show an item, and in which turn."""
    return Table(
        tables.structure,
        (
            _ID,
            _session_id(tables),
            Column("message_id", "integer", parent=f"{tables.messages}.id"),
            Column("branch_id", "identifier", default="'main'"),
            Column("message_type"),
            Column("sequence_number", "integer"),
            Column("user_turn_number", "int32", required=False),
            Column("branch_turn_number", "int32", required=False),
            Column("tool_name", required=False),
            _time("created_at"),
        ),
        key=("id",),
        named=_structure_indexes(tables.structure),
    )


def _structure_indexes(structure: str) -> tuple[Index, ...]:
    """A branch in reading order, its user turns, and the branches that show an item."""
    in_file = f"recollect_{structure}"
    on_server = f"recollect_{structure.removeprefix('recollect_')}"
    turns = ("session_id", "branch_id", "branch_turn_number")
    return (
        Index(f"{in_file}_in_order", ("session_id", "branch_id", "message_id"), database="sqlite"),
        Index(f"{in_file}_by_item", ("message_id",), database="sqlite"),
        Index(f"{in_file}_turns", turns, where="message_type = 'user'", database="sqlite"),
        Index(f"{on_server}_in_order", ("session_id", "branch_id", "message_id"), database="server"),
        Index(f"{on_server}_by_item", ("message_id",), database="server"),
        Index(f"{on_server}_turns", turns, where="message_type = 'user'", database="server"),
    )


def usage_table(tables: Tables) -> Table:
    """The SDK's table of the tokens of each turn."""
    return Table(
        tables.usage,
        (
            _ID,
            _session_id(tables),
            Column("branch_id", "identifier", default="'main'"),
            Column("user_turn_number", "int32"),
            *(Column(name, "integer", required=False, default="0") for name in _COUNTS),
            Column("input_tokens_details", "sdk_json", required=False),
            Column("output_tokens_details", "sdk_json", required=False),
            _time("created_at"),
        ),
        key=("id",),
        unique=(("session_id", "branch_id", "user_turn_number"),),
    )


def runs_table(tables: Tables) -> Table:
    """The runs whose usage was counted: each counts once."""
    return Table(
        tables.runs,
        (_session_id(tables), Column("run_id", "identifier"), Column("usage", "long_text")),
        key=("session_id", "run_id"),
    )


def branches_table(tables: Tables) -> Table:
    """The branches other than the main one, empty ones included, and which of them is current."""
    return Table(
        tables.branches,
        (
            _session_id(tables),
            Column("branch_id", "identifier"),
            Column("is_current", "int32"),
            _time("created_at"),
        ),
        key=("session_id", "branch_id"),
    )


_PLAIN = (sessions_table, messages_table, metadata_table, batches_table, leases_table, notes_table)
_ADVANCED = (structure_table, branches_table, usage_table, runs_table)


@dataclass(frozen=True)
class SessionSchema(Schema):
    """The schema of sessions on tables of these names."""

    tables: Tables

    @property
    def scope(self) -> str:
        """The names of the pair of tables. Advanced sessions add tables to those of plain ones."""
        pair = f"{self.tables.sessions}/{self.tables.messages}"
        return f"{pair}/advanced" if self.tables.advanced else pair

    def described(self) -> Sequence[Table]:
        """The tables of plain sessions, followed by those of advanced sessions where these are used."""
        described = _PLAIN + _ADVANCED if self.tables.advanced else _PLAIN
        return [table(self.tables) for table in described]

    def create(self) -> Script[None]:
        """Create the missing tables and indexes. Files of the SDK may have an index in reading order."""
        messages = self.tables.messages
        has_order = yield from _has_reading_order(messages)
        for table in self.described():
            yield from create_tables_in_sqlite((table,))
            if table.name != messages or not has_order:
                yield from create_indexes_in_sqlite(table)

    def columns(self) -> Mapping[str, Set[str]]:
        """The columns of the SDK's tables, which the SDK may have created."""
        needed: dict[str, Set[str]] = {
            table.name: set(table.column_names)
            for table in (sessions_table(self.tables), messages_table(self.tables))
        }
        if self.tables.advanced:
            needed |= {self.tables.structure: _STRUCTURE_COLUMNS, self.tables.usage: _USAGE_COLUMNS}
        return needed

    def check(self) -> Script[None]:
        """Raise `SchemaMismatchError` if the tables of structure and usage belong to another pair of tables.

        Their names are fixed, so a file has them for one pair only.
        """
        for table in (self.tables.structure, self.tables.usage) if self.tables.advanced else ():
            keys = yield Statement(f'PRAGMA foreign_key_list("{table}")')
            owners = {key[2].lower() for key in keys}
            if owners - {self.tables.sessions.lower(), self.tables.messages.lower()}:
                names = ", ".join(sorted(owners))
                raise SchemaMismatchError(f"table {table!r} belongs to other tables in this file: {names}")


def _has_reading_order(messages: str) -> Script[bool]:
    """Whether the table of items has an index in reading order. Files of older SDKs order by time."""
    indexes = yield Statement(f'PRAGMA index_list("{messages}")')
    for _, name, *_ in indexes:
        columns = yield Statement(f'PRAGMA index_info("{name}")')
        if [column[2] for column in columns] == ["session_id", "id"]:
            return True
    return False


@lru_cache(maxsize=64)
def session_schema(tables: Tables) -> SessionSchema:
    """The schema of these tables, cached."""
    return SessionSchema(tables)
