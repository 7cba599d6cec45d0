"""Times and documents are read back exactly, for every column type and server setting."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from recollect import MemoryStore
from recollect.memory.times import format_time
from recollect.sql.columns import time_to_column
from recollect.sql.scripts import Script, Statement
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import sql
from ..databases import Place

AGENT, USER = "agent", "ada"
SAID = [{"role": "user", "content": "I sail."}]
TIMES = (
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00.000001Z",
    "1582-10-10T12:00:00.100000Z",
    "1999-12-31T23:59:59.999999Z",
    "2000-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
)
DOCUMENT: dict[str, Any] = {
    "zebra": 1,
    "a": {"nested": [1, 2.5, None, True], "empty": {}},
    "big": 12345678901234567890123456789,
    "text": "日本 🎉 \\u0000",
}
UNFIT_FOR_JSONB = (
    {"nul": "a\0b"},
    {"half": "\ud83d"},
    {"other half": "x\ude00"},
    {"swapped": "\ude00\ud83d"},
    {"hidden": "\\ud83d\ude00"},
    {"\0 as a key": 1},
    {"mark": "\x01\\x00"},
    {"number": 1e22, "small": 5e-324, "zero": -0.0},
)


@pytest.fixture
def odd_server(empty_postgres: str) -> Iterator[None]:
    """A server whose zone is not UTC, at a distance of hours and seconds, and which writes dates its way."""
    name = empty_postgres.rpartition("/")[2]
    sql(empty_postgres, f"ALTER DATABASE {name} SET TimeZone = 'America/New_York'")
    sql(empty_postgres, f"ALTER DATABASE {name} SET DateStyle = 'German'")
    yield
    sql(empty_postgres, f"ALTER DATABASE {name} RESET TimeZone")
    sql(empty_postgres, f"ALTER DATABASE {name} RESET DateStyle")


async def record(store: MemoryStore, name: str, time: str) -> None:
    if time == TIMES[-1]:  # nothing can be said so late, so the rows are given that time
        await store.record_conversation(AGENT, USER, SAID, conversation_id=name)
        await store._database.write(partial(_date, name, datetime.fromisoformat(time)))
        return
    said = [{**SAID[0], "created_at": time}]
    await store.record_conversation(AGENT, USER, said, conversation_id=name, created_at=time)


def _date(name: str, time: datetime) -> Script[None]:
    for table in ("conversations", "conversation_messages"):
        change = f"UPDATE {table} SET created_at = ?2 WHERE conversation_id = ?1"
        yield Statement(change, (name, time_to_column(time)))


@pytest.mark.usefixtures("odd_server")
@in_event_loop
async def test_times_come_back_to_the_microsecond(place: Place) -> None:
    async with place.open() as store:
        for number, time in enumerate(TIMES):
            await record(store, f"c{number}", time)
        for number, time in enumerate(TIMES):
            found = await store.get_conversation(f"c{number}")
            assert found is not None
            assert format_time(found.created_at) == format_time(found.messages[0].created_at) == time


@pytest.mark.usefixtures("odd_server")
@in_event_loop
async def test_conversations_are_listed_by_their_times(place: Place) -> None:
    async with place.open() as store:
        for number in (3, 0, 5, 1, 4, 2):
            await record(store, f"c{number}", TIMES[number])
        listed, before = [], None
        while page := await store.list_conversations(before=before, limit=2):
            listed += [outline["conversation_id"] for outline in page]
            before = page[-1]["position"]
        assert listed == ["c5", "c4", "c3", "c2", "c1", "c0"]
        with pytest.raises(ValueError, match="position"):
            await store.list_conversations(before="yesterday/c1")


@pytest.mark.usefixtures("odd_server")
@in_event_loop
async def test_a_memory_is_read_as_of_a_time(place: Place) -> None:
    async with place.open() as store:
        before = datetime.now(UTC)
        first = await store.add_entry(AGENT, USER, "profile", "The user sails.")
        between = first.learned_at
        await store.edit_entry(first.content_id, "The user skis.")
        for time, expected in ((before, []), (between, ["The user sails."]), (None, ["The user skis."])):
            memory = await store.get_memory(AGENT, USER, as_of=time)
            assert memory is not None
            assert memory.profile_content == expected


@pytest.mark.parametrize("document", [DOCUMENT, *UNFIT_FOR_JSONB], ids=lambda document: next(iter(document)))
@in_event_loop
async def test_documents_come_back_whole(place: Place, document: dict[str, Any]) -> None:
    async with place.open() as store:
        await record(store, "c", TIMES[3])
        await store.change_conversation_settings("c", memory_strategy=document)
        found = await store.get_conversation_settings("c")
        assert found is not None
        assert found.memory_strategy == document
        told = json.dumps(found.memory_strategy, sort_keys=True)
        assert told == json.dumps(document, sort_keys=True), "a number keeps its type"


@in_event_loop
async def test_a_strategy_stays_when_another_setting_changes(place: Place) -> None:
    async with place.open() as store:
        await record(store, "c", TIMES[3])
        await store.change_conversation_settings("c", memory_strategy=DOCUMENT)
        await store.change_conversation_settings("c", memory_injection=False)
        found = await store.get_conversation_settings("c")
        assert found is not None
        assert (found.memory_strategy, found.memory_injection) == (DOCUMENT, False)


@in_event_loop
async def test_people_query_times_and_documents(empty_postgres: str) -> None:
    async with Place(empty_postgres).open(workers=1) as store:
        await record(store, "c", "2026-05-01T10:00:00Z")
        await store.drain(60)
        await store.change_conversation_settings("c", memory_strategy={"mode": "trim", "turns": 5})
    days = "SELECT date_trunc('day', created_at AT TIME ZONE 'UTC')::text FROM conversations"
    assert sql(empty_postgres, f"{days} WHERE created_at < now()") == [("2026-05-01 00:00:00",)]
    path = "'{pipeline_metadata,conversation_length}'"
    assert sql(empty_postgres, f"SELECT pipeline_result #>> {path} FROM conversations") == [("1",)]
    trimmed = 'SELECT conversation_id FROM conversations WHERE memory_strategy @> \'{"mode": "trim"}\''
    assert sql(empty_postgres, trimmed) == [("c",)]


@in_event_loop
async def test_a_page_of_conversations_is_read_from_an_index(empty_postgres: str) -> None:
    async with Place(empty_postgres).open() as store:
        await record(store, "c", TIMES[3])
    page = (
        "EXPLAIN SELECT conversation_id FROM conversations WHERE tenant = 'default'"
        " AND (created_at, conversation_id) < ('2026-05-01T10:00:00Z', 'c')"
        " ORDER BY created_at DESC, conversation_id DESC LIMIT 5"
    )
    plan = sql(empty_postgres, page)
    assert any("recollect_conversations_tenant_created_at_conversation_id" in line for (line,) in plan)
    assert not any("Sort" in line for (line,) in plan)
