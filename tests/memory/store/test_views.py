"""The views of PostgreSQL: a memory and a conversation as one row of documents, for SQL of other programs."""

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import psycopg
import pytest

from recollect.memory.database.views import VIEWS
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import sql
from ..databases import Place
from ..vectors.kit import direction_of, embed_all, vectors_of

SAID = [
    {
        "message_id": "m0",
        "role": "user",
        "content": "I moved to Lisbon.",
        "created_at": "2026-05-03T12:00:00Z",
    },
    {"message_id": "m1", "role": "assistant", "content": "Enjoy it!", "created_at": "2026-05-03T12:00:09Z"},
]


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    return sql(url, query)


async def tell(store: MemoryStore, user: str = "ada") -> None:
    await store.record_conversation("agent", user, SAID, session_id="s", conversation_id=f"c-{user}")


@in_event_loop
async def test_a_memory_is_a_row_with_an_array_for_each_type(empty_postgres: str) -> None:
    async with Place(empty_postgres).open() as store:
        old = await store.add_entry("agent", "ada", "profile", "The user lives in Porto.")
        await store.add_entry("agent", "ada", "profile", "The user has a dog.")
        await store.edit_entry(old.content_id, "The user lives in Lisbon.")
        await store.add_entry("agent", "ada", "event", "The user went to Sintra.")
        await store.add_entry("agent", "ada", "mind", "The user was tired.", expires_at="2020-01-01")
    names = "profile_content, event_content, mind_content"
    where = "agent_id = 'agent' AND user_id = 'ada'"
    assert rows(empty_postgres, f"SELECT {names} FROM memory_documents WHERE {where}") == [
        (["The user has a dog.", "The user lives in Lisbon."], ["The user went to Sintra."], [])
    ]
    found = "SELECT user_id FROM memory_documents WHERE profile_content @> '[\"The user has a dog.\"]'"
    assert rows(empty_postgres, found) == [("ada",)]


@in_event_loop
async def test_a_conversation_is_a_row_with_its_messages(empty_postgres: str) -> None:
    async with Place(empty_postgres).open() as store:
        await tell(store)
        memory = await store.get_memory("agent", "ada")
    names = "agent_id, user_id, session_id, memory_id, turn_count, created_at, conversation_data"
    ((*owner, created_at, data),) = rows(empty_postgres, f"SELECT {names} FROM conversation_documents")
    assert memory is not None
    assert owner == ["agent", "ada", "s", memory.memory_id, 2]
    assert isinstance(created_at, datetime)
    expected = [{**each, "message_index": index} for index, each in enumerate(SAID)]
    for each in data["messages"]:
        time = datetime.fromisoformat(each["created_at"])
        each["created_at"] = time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    assert data == {"messages": expected}
    role = "conversation_data->'messages'->0->>'role'"
    assert rows(empty_postgres, f"SELECT {role} FROM conversation_documents") == [("user",)]


@in_event_loop
async def test_the_vector_of_a_conversation_is_the_mean_of_its_messages(empty_postgres: str) -> None:
    async with Place(empty_postgres).open() as store:
        await tell(store)
        vector = "SELECT conversation_vector::text FROM conversation_documents WHERE user_id = 'ada'"
        assert rows(empty_postgres, vector) == [(None,)], "no message has a vector yet"
        await embed_all(vectors_of(store))
        ((text,),) = rows(empty_postgres, vector)
        directions = [direction_of(each["content"]) for each in SAID]
        mean = np.mean([each / np.linalg.norm(each) for each in directions], axis=0)  # as they are stored
        assert np.allclose(json.loads(text), mean, atol=1e-5)
        await tell(store, "ben")
        await embed_all(vectors_of(store))
        near = "conversation_vector <=> (SELECT conversation_vector FROM conversation_documents LIMIT 1)"
        assert len(rows(empty_postgres, f"SELECT user_id FROM conversation_documents ORDER BY {near}")) == 2


@in_event_loop
async def test_vectors_of_two_models_are_not_added_up(empty_postgres: str) -> None:
    async with Place(empty_postgres).open() as store:
        await tell(store)
        await embed_all(vectors_of(store))
    other = "UPDATE conversation_messages SET content_vector = '[1,2,3]', vector_dimension = 3,"
    sql(empty_postgres, f"{other} vector_model = 'other' WHERE message_index = 1")
    query = "SELECT vector_dims(conversation_vector) FROM conversation_documents"
    assert rows(empty_postgres, query) in ([(3,)], [(8,)])


@pytest.mark.parametrize("view", [view.name for view in VIEWS])
@pytest.mark.parametrize("change", ["UPDATE {} SET agent_id = 'x'", "DELETE FROM {}"])
def test_views_cannot_be_written_to(empty_postgres: str, view: str, change: str) -> None:
    with pytest.raises(
        psycopg.errors.ObjectNotInPrerequisiteState, match=r"cannot (update|delete from) view"
    ):
        sql(empty_postgres, change.format(view))
