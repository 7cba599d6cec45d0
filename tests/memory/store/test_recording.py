"""Recording conversations and reading them back."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from recollect.errors import ConflictError
from recollect.memory.run import Coverage
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ..databases import Place

USER = {"role": "user", "content": "I went to the zoo"}
ASSISTANT = {"role": "assistant", "content": "How nice"}
SYSTEM = {"role": "system", "content": "You are kind"}


async def record(store: MemoryStore, *messages: Any, user: str = "user", **more: Any) -> Any:
    return await store.record_conversation("agent", user, messages or [USER], **more)


async def everything(store: MemoryStore) -> Any:
    """All that a store tells, to see that a call changed nothing."""
    return (
        await store.coverage(),
        [run.to_dict() for run in await store.list_runs()],
        [memory.to_dict() for memory in await store.list_memories()],
        await store.list_conversations("agent", "user"),
    )


@in_event_loop
async def test_what_is_recorded_is_read_again(place: Place) -> None:
    async with place.open() as store:
        recorded = await record(store, SYSTEM, USER, ASSISTANT, session_id="s")
        stored = await store.get_conversation(recorded.conversation_id)
        assert stored is not None
        assert stored.to_dict() == recorded.to_dict()
        assert stored.memory_id is not None
        assert await store.coverage() == Coverage(pending=1)


@in_event_loop
async def test_an_unknown_conversation_is_none(place: Place) -> None:
    async with place.open() as store:
        assert await store.get_conversation("unknown") is None
        assert await store.list_conversations("agent", "nobody") == []
        assert await store.list_runs_of("unknown") == []


@in_event_loop
async def test_the_same_recorded_twice_changes_nothing(place: Place) -> None:
    async with place.open() as store:
        await record(store, USER, ASSISTANT, conversation_id="c")
        before = await everything(store)
        again = await record(store, USER, ASSISTANT, conversation_id="c")
        assert again.conversation_id == "c"
        assert await everything(store) == before


@in_event_loop
async def test_the_same_recorded_at_once_is_recorded_once(shared_place: Place) -> None:
    async with shared_place.open() as store, shared_place.open() as other:
        await asyncio.gather(
            *(record(each, USER, conversation_id="c") for each in (store, other) for _ in range(5))
        )
        assert len(await store.list_runs_of("c")) == 1
        assert len(await store.list_memories()) == 1


@pytest.mark.parametrize("others", [[ASSISTANT], [USER, USER], [{**USER, "content": "I went home"}]])
@in_event_loop
async def test_another_conversation_under_the_same_id_is_a_conflict(place: Place, others: list[Any]) -> None:
    async with place.open() as store:
        await record(store, USER, conversation_id="c")
        before = await everything(store)
        with pytest.raises(ConflictError, match="another conversation"):
            await record(store, *others, conversation_id="c")
        with pytest.raises(ConflictError, match="another conversation"):
            await record(store, USER, user="somebody", conversation_id="c")
        assert (await everything(store))[3] == before[3]


@in_event_loop
async def test_a_conflict_leaves_no_memory_of_a_new_user(place: Place) -> None:
    async with place.open() as store:
        await record(store, conversation_id="c")
        with pytest.raises(ConflictError):
            await record(store, user="new", conversation_id="c")
        assert [memory.user_id for memory in await store.list_memories()] == ["user"]
        assert await store.coverage() == Coverage(pending=1)


@in_event_loop
async def test_conversations_of_one_user_at_once_have_a_run_each(shared_place: Place) -> None:
    """Of transactions that number their runs at the same time, all but one must begin again."""
    async with shared_place.open() as one, shared_place.open() as other:
        stores = [one, other] * 20
        recorded = await asyncio.gather(*(record(store, USER, SYSTEM, ASSISTANT) for store in stores))
        assert len({conversation.memory_id for conversation in recorded}) == 1
        runs = await one.list_runs(limit=100)
        assert {run.conversation_id for run in runs} == {each.conversation_id for each in recorded}
        assert len(runs) == len(stores)
        assert await one.coverage() == Coverage(pending=len(stores))


@in_event_loop
@pytest.mark.parametrize("number", [1, 50, 51])
async def test_short_and_long_conversations_are_stored_alike(place: Place, number: int) -> None:
    said = [
        {"role": "user", "content": f"line {place}", "name": "Ada", "attachments": [{"type": "file"}]}
        for place in range(number)
    ]
    async with place.open() as store:
        recorded = await record(store, *said, metadata={"from": "phone"}, tags=["a", "b"])
        stored = await store.get_conversation(recorded.conversation_id)
        assert stored is not None
        assert stored.to_dict() == recorded.to_dict()
        found = await store.search_conversations(f"line {number - 1}", "agent", "user")
        assert found.hits[0].message.content == f"line {number - 1}"


@in_event_loop
async def test_a_memory_of_another_user_is_a_conflict(place: Place) -> None:
    async with place.open() as store:
        memory_id = (await record(store)).memory_id
        with pytest.raises(ConflictError, match="memory_id is not that of this agent and user"):
            await record(store, user="somebody", memory_id=memory_id)
        with pytest.raises(ConflictError, match="memory_id is not that of this agent and user"):
            await record(store, memory_id="another")
        assert (await record(store, memory_id=memory_id)).memory_id == memory_id
        assert await store.get_memory("agent", "somebody") is None


@in_event_loop
async def test_messages_are_appended_at_the_next_places(place: Place) -> None:
    async with place.open() as store:
        conversation = await record(store, USER, ASSISTANT)
        added = await store.append_messages(conversation.conversation_id, [USER, ASSISTANT])
        assert [message.message_index for message in added] == [2, 3]
        stored = await store.get_conversation(conversation.conversation_id)
        assert stored is not None
        assert stored.messages == (*conversation.messages, *added)
        runs = await store.list_runs_of(conversation.conversation_id)
        assert [(run.first_index, run.last_index) for run in runs] == [(0, 1), (2, 3)]


@in_event_loop
async def test_appending_from_many_sides_leaves_no_gap_and_no_double(shared_place: Place) -> None:
    async with shared_place.open() as store, shared_place.open() as other:
        conversation = await record(store)
        key = conversation.conversation_id
        await asyncio.gather(
            *(each.append_messages(key, [USER, ASSISTANT]) for each in (store, other) for _ in range(5))
        )
        stored = await store.get_conversation(key)
        assert stored is not None
        assert [message.message_index for message in stored.messages] == list(range(21))
        assert sorted(run.first_index for run in await store.list_runs_of(key)) == [0, *range(1, 21, 2)]


@in_event_loop
async def test_appending_to_nothing_or_nothing_is_refused(place: Place) -> None:
    async with place.open() as store:
        conversation = await record(store)
        before = await everything(store)
        with pytest.raises(ConflictError, match="no conversation"):
            await store.append_messages("unknown", [USER])
        with pytest.raises(ValueError, match="messages must not be empty"):
            await store.append_messages(conversation.conversation_id, [])
        assert await everything(store) == before


@in_event_loop
async def test_conversations_are_listed_page_by_page_the_newest_first(place: Place) -> None:
    async with place.open() as store:
        for day in range(1, 6):
            await record(
                store,
                ASSISTANT,
                USER,
                conversation_id=f"c{day}",
                created_at=datetime(2024, 1, day, tzinfo=UTC),
            )
        await record(store, conversation_id="same time", created_at="2024-01-03T00:00:00Z")
        pages = []
        before = None
        while page := await store.list_conversations("agent", "user", before=before, limit=2):
            pages += [each["conversation_id"] for each in page]
            before = page[-1]["position"]
        assert pages == ["c5", "c4", "same time", "c3", "c2", "c1"]
        (newest,) = await store.list_conversations("agent", "user", limit=1)
        assert newest["summary"] == "Conversation with 2 turns: I went to the zoo..."
        assert newest["turn_count"] == 2
        assert newest["created_at"] == "2024-01-05T00:00:00Z"
        assert "messages" not in newest


@in_event_loop
async def test_a_page_after_nothing_is_refused(place: Place) -> None:
    async with place.open() as store:
        await record(store)
        for before in ("unknown", "", "nul\0/c"):
            with pytest.raises(ValueError, match="before must"):
                await store.list_conversations("agent", "user", before=before)
        with pytest.raises(ValueError, match="limit"):
            await store.list_conversations("agent", "user", limit=-1)
        assert await store.list_conversations("agent", "user", limit=0) == []


@pytest.mark.parametrize(
    "content",
    [
        "nul \x00",
        "half of a character \ud83d",
        "\x01 marked",
        "\\u0041 \\",
        "🦊 用户住在北京 עברית",
        "%s ?1 $1 '; --",
    ],
)
@in_event_loop
async def test_whatever_was_said_is_stored_as_it_is(place: Place, content: str) -> None:
    async with place.open() as store:
        conversation = await record(store, {"role": "user", "content": content})
        stored = await store.get_conversation(conversation.conversation_id)
        assert stored is not None
        assert stored.messages[0].content == content
        (told,) = await store.list_conversations("agent", "user")
        assert told["summary"] == f"Conversation with 1 turns: {content}..."


BAD: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"messages": []}, ValueError),
    ({"messages": [{"role": "narrator", "content": "x"}]}, ValueError),
    ({"messages": [USER, {"role": "user", "content": None}]}, ValueError),
    ({"messages": "hello"}, TypeError),
    ({"agent_id": ""}, ValueError),
    ({"user_id": ""}, ValueError),
    ({"created_at": "soon"}, ValueError),
    ({"conversation_id": "x" * 300}, ValueError),
    ({"user_id": "half \ud83d"}, ValueError),
]


@pytest.mark.parametrize(("given", "kind"), BAD, ids=range(len(BAD)))
@in_event_loop
async def test_bad_input_changes_nothing(
    shared_place: Place, given: dict[str, Any], kind: type[Exception]
) -> None:
    async with shared_place.open() as store:
        await record(store)
        before = await everything(store)
        with pytest.raises(kind):
            await store.record_conversation(
                **{"agent_id": "agent", "user_id": "user", "messages": [USER], **given}
            )
        assert await everything(store) == before


@in_event_loop
async def test_ids_that_look_alike_are_different(place: Place) -> None:
    names = ["a", "A", "a ", "a:b", "a%", "a_", "'", "ä", "a\u0308", "x" * 4000, "x" * 4001]
    async with place.open() as store:
        for name in names:
            await record(store, {"role": "user", "content": f"I am {name[-9:]}"}, user=name)
        assert len({memory.user_id for memory in await store.list_memories(limit=100)}) == len(names)
        for name in names:
            (told,) = await store.list_conversations("agent", name)
            assert told["user_id"] == name


@pytest.mark.proof
@in_event_loop
async def test_a_hundred_thousand_messages(file_place: Place) -> None:
    messages = [{"role": "user", "content": f"number {number}"} for number in range(100_000)]
    async with file_place.open() as store:
        conversation = await record(store, *messages)
        assert conversation.turn_count == 100_000
        (told,) = await store.list_conversations("agent", "user")
        assert told["turn_count"] == 100_000
        assert len(await store.list_runs(limit=3)) == 3
        assert await store.coverage() == Coverage(pending=1)


@in_event_loop
async def test_five_megabytes_of_content(file_place: Place) -> None:
    content = "字" * 1_700_000
    async with file_place.open() as store:
        conversation = await record(store, USER, {"role": "user", "content": content}, ASSISTANT)
        stored = await store.get_conversation(conversation.conversation_id)
        assert stored is not None
        assert stored.messages[1].content == content
        assert len(await store.list_runs_of(conversation.conversation_id)) == 3


@in_event_loop
async def test_a_store_that_is_closed_says_so(place: Place) -> None:
    store = place.open()
    await record(store)
    await store.aclose()
    await store.aclose()
    with pytest.raises(RuntimeError, match="is closed"):
        await record(store)


@pytest.mark.parametrize("workers", [-1, 1.5, True, "2"])
def test_a_number_of_workers_without_sense_is_refused(file_place: Place, workers: Any) -> None:
    with pytest.raises(ValueError, match="workers must be a whole number from 0 on"):
        file_place.open(workers=workers)
