"""Every table of every schema is known to the rights: a new table cannot be forgotten."""

import importlib
import pkgutil

import recollect
from recollect.integrations.langgraph.schema import CheckpointSchema
from recollect.integrations.langgraph.store.schema import StoreSchema
from recollect.memory.database.removal import COUNTED, COUNTED_BENEATH
from recollect.memory.database.schema import (
    CONVERSATIONS,
    EMBEDDERS,
    KEYS,
    MEMORIES,
    MESSAGE_ITEMS,
    MESSAGE_RECORDS,
    TABLES,
    MemorySchema,
)
from recollect.memory.rights.langgraph_data import STORE_TABLES, THREAD_TABLES
from recollect.memory.rights.personal_data import LOG_TABLES, MEMORY_TABLES, dependents
from recollect.providers.openai.database.schema import CHAT_TURNS, ChatSchema
from recollect.server.database.schema import TABLES as SERVICE_TABLES
from recollect.server.database.schema import ServiceSchema
from recollect.sessions.events.schema import EventSchema
from recollect.sessions.sql.schema import SessionSchema
from recollect.sessions.sql.tables import Tables
from recollect.sql.schema import Schema
from recollect.strategies.summaries.schema import SummarySchema

SESSIONS = Tables(advanced=True)
SCHEMAS: tuple[Schema, ...] = (
    MemorySchema(),
    EventSchema(),
    SummarySchema(),
    ChatSchema(),
    ServiceSchema(),
    SessionSchema(SESSIONS),
    CheckpointSchema(),
    StoreSchema(),
)
NOT_PERSONAL = {
    KEYS.name: "a secret of the tenant",
    EMBEDDERS.name: "a setting of the tenant",
    "api_keys": "the keys of programs",
    "audit_log": "ids and actions, kept on purpose after an erasure",
    "idempotency_keys": "ids, which the service deletes with the user",
    "tenant_tokens": "sums of a tenant",
    "token_reservations": "estimates that live for minutes",
}


def tables_of(schema: Schema) -> set[str]:
    return set(schema.describe().tables)


def test_these_are_all_schemas_of_the_package() -> None:
    for module in pkgutil.walk_packages(recollect.__path__, "recollect."):
        if module.name.endswith("schema"):
            importlib.import_module(module.name)
    ours = {each for each in Schema.__subclasses__() if each.__module__.startswith("recollect.")}
    assert ours == {type(schema) for schema in SCHEMAS}


def test_each_table_is_erased_with_a_user_or_holds_nothing_personal() -> None:
    erased = {table.name for table in (*MEMORY_TABLES, *LOG_TABLES)}
    erased |= {table.name for table in dependents(CONVERSATIONS.name, [CHAT_TURNS])}
    erased |= {name for name in vars(SESSIONS).values() if isinstance(name, str)}
    erased |= {*THREAD_TABLES, *STORE_TABLES}
    for schema in SCHEMAS:
        assert tables_of(schema) <= erased | NOT_PERSONAL.keys()
    assert not erased & NOT_PERSONAL.keys()
    assert {table.name for table in SERVICE_TABLES} <= NOT_PERSONAL.keys()


def test_the_rows_of_each_table_of_memory_are_counted() -> None:
    """But for what each message has beside it: links to items, which copy ids, and its search record."""
    counted = {*COUNTED.values(), *(table for table, _, _ in COUNTED_BENEATH.values())}
    assert {table.name for table in MEMORY_TABLES} - counted == {MESSAGE_ITEMS.name, MESSAGE_RECORDS.name}


def test_dependents_are_found_through_other_tables() -> None:
    assert {table.name for table in TABLES} - {table.name for table in MEMORY_TABLES} == {
        KEYS.name,
        EMBEDDERS.name,
    }
    assert dependents(CONVERSATIONS.name, [MEMORIES]) == ()
