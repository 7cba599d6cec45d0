"""The schema of a database server, as Alembic revisions. SQLite files migrate when they are opened."""

from pathlib import Path
from typing import TYPE_CHECKING

from ..extras import require_extra
from ..sql.schema import Schema, check_versions
from ..sql.sqlalchemy.revisions import VERSION_TABLE, in_transaction, read_revision

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection


async def migrate(url: str) -> tuple[str | None, str | None]:
    """Upgrade a database to the newest revision. Returns the revision before and the one after.

    Raises `SchemaMismatchError` if a newer version of Recollect migrated it.
    """
    require_extra("postgres", "alembic", "migrating a database server")
    return await in_transaction(url, _upgrade)


def all_schemas() -> list[Schema]:
    """The schemas of all parts of Recollect that have tables, parents before their children.

    Sessions are under their default names, and under those of chats.
    """
    from ..integrations.langgraph.schema import CheckpointSchema
    from ..integrations.langgraph.store.schema import StoreSchema
    from ..memory.database.schema import MemorySchema
    from ..providers.openai.database.schema import SESSION_TABLES, ChatSchema
    from ..server.database.schema import ServiceSchema
    from ..sessions.events.schema import EventSchema
    from ..sessions.sql.schema import session_schema
    from ..sessions.sql.tables import tables_named
    from ..strategies.summaries.schema import SummarySchema

    return [
        session_schema(tables_named("agent_sessions", "agent_messages", advanced=True)),
        session_schema(SESSION_TABLES),
        EventSchema(),
        SummarySchema(),
        MemorySchema(),
        ServiceSchema(),
        ChatSchema(),
        CheckpointSchema(),
        StoreSchema(),
    ]


def _upgrade(connection: "Connection") -> tuple[str | None, str | None]:
    from alembic import command

    from ..sql.sqlalchemy.metadata import creation_lock

    # Concurrent migrations wait for each other. The second one then has nothing to do.
    with creation_lock(connection):
        config = _config()
        config.attributes["connection"] = connection
        before = read_revision(connection)
        check_versions([before] if before else [])
        command.upgrade(config, "head")
        return before, read_revision(connection)


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config


__all__ = ["VERSION_TABLE", "all_schemas", "migrate"]
