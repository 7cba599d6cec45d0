"""What a chat leaves in other tables goes with its conversation: sessions, events, summaries, turns."""

from typing import Any

from recollect import ConversationSummaryStore, EventLog, SessionMetadata, open_session
from recollect.memory.conversation import Conversation
from recollect.sql.scripts import Statement
from recollect.testing.contract import in_event_loop

from .kit import AGENT, Somewhere, Store, said
from .people import marked, rows_of

TABLES: dict[str, Any] = {
    "sessions_table": "sdk_agent_sessions",
    "messages_table": "sdk_agent_session_messages",
}


async def chat(
    somewhere: Somewhere, store: Store, user: str, mark: str, *, provider_id: str | None = None, **owner: Any
) -> Conversation:
    """A conversation with all that a service keeps of it."""
    conversation = await store.open_conversation(AGENT, user)
    key = conversation.conversation_id
    await store.append_messages(key, said(f"hello {mark}"), learn_after=600)
    if provider_id is not None:
        await store.change_conversation_settings(key, provider_conversation_id=provider_id)
    session_id = provider_id or key
    options: dict[str, Any] = {"create_tables": True} if somewhere.create_tables else {}
    metadata = SessionMetadata(**owner) if owner else None
    session: Any = open_session(
        somewhere.url, session_id, advanced=True, metadata=metadata, **TABLES, **options
    )
    await session.add_items([{"role": "user", "content": f"hello {mark}"}])
    await session.aclose()
    made = {"create_tables": somewhere.create_tables}
    async with (
        EventLog(somewhere.url, **made) as log,
        ConversationSummaryStore(somewhere.url, **made) as kept,
    ):
        await log.append(key, [{"role": "user", "content": f"hello {mark}"}])
        await kept.add(session_id, f"a talk of {mark}")
    return conversation


OWNERS: list[dict[str, Any]] = [
    {},
    {"user_id": "ann", "agent_id": AGENT, "data": {"tenant": "there"}},
    {"provider_id": "conv_1"},
    {"provider_id": "conv_2", "user_id": "ann", "data": {"tenant": "there"}},
]


@in_event_loop
async def test_a_conversation_goes_with_its_session_events_and_summaries(shared: Somewhere) -> None:
    for number, owner in enumerate(OWNERS):
        async with shared.open(tenant="there") as store:
            erased = await chat(shared, store, "ann", f"<gone {number}>", **owner)
            kept = {name: value for name, value in owner.items() if name != "provider_id"}
            await chat(shared, store, "ann", f"<stays {number}>", **kept)
            before = marked(rows_of(shared.url), f"<stays {number}>")
            receipt = await store.erase_conversation(erased.conversation_id)
            left = rows_of(shared.url)
            assert marked(left, f"<gone {number}>") == {}
            assert marked(left, erased.conversation_id) == {}
            assert marked(left, f"<stays {number}>") == before
            names = ("conversations", "messages", "sessions", "items", "events", "summaries")
            assert [receipt.counts[name] for name in names] == [1] * 6


@in_event_loop
async def test_the_words_of_a_message_go_from_its_session_too(shared: Somewhere) -> None:
    async with shared.open(tenant="there") as store:
        talked = await chat(shared, store, "ann", "<gone>")
        key = talked.conversation_id
        session: Any = open_session(shared.url, key, advanced=True, **TABLES)
        answer = [{"type": "output_text", "text": "well <gone>", "annotations": []}]
        await session.add_items([{"type": "message", "role": "assistant", "content": answer}])
        await session.set_note("view", {"summary": "they spoke of <gone>"}, 0)
        said_by = {"role": "assistant", "content": "well <gone>"}
        (spoken,) = await store.append_messages(key, [said_by], learn_after=600)
        (asked, _) = await store.list_messages(key) or ()
        for message_id in (asked.message_id, spoken.message_id):
            receipt = await store.erase_message(key, message_id)
            assert receipt.counts["items"] == 1
        assert marked(rows_of(shared.url), "<gone>") == {}
        first, second = await session.get_items()
        assert first == {"role": "user", "content": "[erased]"}
        assert second["content"][0]["text"] == "[erased]"
        await session.aclose()


@in_event_loop
async def test_a_user_goes_with_sessions_that_do_not_name_them(shared: Somewhere) -> None:
    async with shared.open(tenant="there") as store:
        for number, owner in enumerate(OWNERS):
            await chat(shared, store, "ann", f"<ann {number}>", **owner)
        await chat(shared, store, "bob", "<bob>")
        receipt = await store.erase_user("ann")
        left = rows_of(shared.url)
        assert marked(left, "<ann") == {}
        assert len(marked(left, "<bob>")) == 4
        assert [receipt.counts[name] for name in ("sessions", "items", "events", "summaries")] == [4] * 4


@in_event_loop
async def test_a_session_of_another_that_is_named_as_the_provider_s_stays(shared: Somewhere) -> None:
    async with shared.open() as store, shared.open(tenant="there") as stranger:
        await chat(shared, store, "bob", "<bob>", provider_id="conv_bob", user_id="bob")
        before = marked(rows_of(shared.url), "<bob>")
        for mine, user in ((store, "ann"), (stranger, "ann")):
            taken = await mine.open_conversation(AGENT, user)
            await mine.change_conversation_settings(
                taken.conversation_id, provider_conversation_id="conv_bob"
            )
            receipt = await mine.erase_conversation(taken.conversation_id)
            assert (receipt.counts["sessions"], receipt.counts["summaries"]) == (0, 0)
        assert marked(rows_of(shared.url), "<bob>") == before


@in_event_loop
async def test_rows_of_others_that_name_a_conversation_go_and_are_counted(shared: Somewhere) -> None:
    async with shared.open() as store:
        first, second = [await store.open_conversation(AGENT, "ann") for _ in range(2)]
        await store.open_conversation(AGENT, "bob", conversation_id="bobs")
        await make_turns(store, first.conversation_id, second.conversation_id, "bobs")
        receipt = await store.erase_conversation(first.conversation_id)
        assert receipt.counts["turns_beside"] == 2
        assert (await store.erase_user("ann")).counts["turns_beside"] == 2
        rows = rows_of(shared.url)["turns_beside"] if shared.url != ":memory:" else []
        assert [row[1] for row in rows] == ["bobs", "bobs"]
        await store.erase_user("bob")
        await drop_turns(store)


async def make_turns(store: Store, *conversation_ids: str) -> None:
    """A table of others with two rows for each conversation."""

    def script() -> Any:
        yield Statement(
            "CREATE TABLE turns_beside (turn_id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL"
            " REFERENCES conversations (conversation_id) ON DELETE CASCADE)"
        )
        for number, key in enumerate(conversation_ids * 2):
            yield Statement("INSERT INTO turns_beside VALUES (?1, ?2)", (f"t{number}", key))

    await store._database.write(script)


async def drop_turns(store: Store) -> None:
    def script() -> Any:
        yield Statement("DROP TABLE turns_beside")

    await store._database.write(script)


@in_event_loop
async def test_conversations_that_nothing_was_added_to_for_long_are_erased(somewhere: Somewhere) -> None:
    async with somewhere.open() as store, somewhere.open(tenant="there") as stranger:
        for number in range(4):
            await store.open_conversation(AGENT, "ann", conversation_id=f"c{number}")
        await stranger.open_conversation(AGENT, "ann", conversation_id="not theirs")
        await store.append_messages("c0", said("still here"), learn_after=600)
        last = await store.get_conversation_outline("c3")
        assert last is not None
        edge = last["updated_at"]
        assert await store.erase_conversations_before("2020-01-01T00:00:00Z") == 0
        assert await store.erase_conversations_before(edge, limit=1) == 1
        assert await store.get_conversation("c1") is None
        assert await store.erase_conversations_before(edge) == 1
        left = [told["conversation_id"] for told in await store.list_conversations()]
        assert sorted(left) == ["c0", "c3"]
        assert await store.erase_conversations_before("2999-01-01T00:00:00Z") == 2
        if somewhere.url != ":memory:":
            assert await stranger.get_conversation("not theirs") is not None
