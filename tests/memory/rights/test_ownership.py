"""Whose sessions, events and summaries it is that go with a user."""

from typing import Any

from recollect import EventLog, SessionMetadata, open_session
from recollect.testing.contract import in_event_loop

from .kit import AGENT, Somewhere, Store, said
from .people import marked, rows_of


async def open_with(somewhere: Somewhere, session_id: str, **owner: Any) -> None:
    """A session with an item, an event, and perhaps an owner."""
    options: dict[str, Any] = {"create_tables": True} if somewhere.create_tables else {}
    metadata = SessionMetadata(**owner) if owner else None
    session: Any = open_session(somewhere.url, session_id, metadata=metadata, **options)
    await session.add_items([{"role": "user", "content": f"in {session_id}"}])
    await session.aclose()
    async with EventLog(somewhere.url, create_tables=somewhere.create_tables) as log:
        await log.append(session_id, [{"role": "user", "content": f"event in {session_id}"}])


async def record(store: Store, user: str, session_id: str, conversation_id: str | None = None) -> None:
    await store.record_conversation(
        AGENT, user, said("hello"), session_id=session_id, conversation_id=conversation_id
    )


OWNERS: list[tuple[str, dict[str, Any], dict[str, str], bool]] = [
    ("it names the user", {"user_id": "ann"}, {}, True),
    ("it names another", {"user_id": "bob"}, {}, False),
    ("it names another, and a conversation of the user names it", {"user_id": "bob"}, {"ann": "s"}, False),
    ("it names nobody", {"title": "a talk"}, {}, False),
    ("it names nobody, and a conversation of the user names it", {"title": "a talk"}, {"ann": "s"}, True),
    ("it has no metadata, and a conversation of the user names it", {}, {"ann": "s"}, True),
    ("conversations of two users name it", {}, {"ann": "s", "bob": "s"}, False),
    ("it is another tenant's", {"user_id": "ann", "data": {"tenant": "other"}}, {}, False),
    ("it is another tenant's and named", {"data": {"tenant": "other"}}, {"ann": "s"}, False),
]


@in_event_loop
async def test_a_session_and_its_events_go_with_the_user_whose_it_is(shared: Somewhere) -> None:
    async with shared.open() as store:
        for number, (_, owner, named, _) in enumerate(OWNERS):
            await open_with(shared, f"s<{number}>", **owner)
            for user in named:
                await record(store, user, f"s<{number}>")
        await store.erase_user("ann")
        left = rows_of(shared.url)
        for number, (case, _, _, goes) in enumerate(OWNERS):
            found = marked(
                {name: left[name] for name in ("agent_messages", "conversation_events")}, f"s<{number}>"
            )
            assert found.keys() == (set() if goes else {"agent_messages", "conversation_events"}), case


@in_event_loop
async def test_a_conversation_named_like_a_session_of_another_leaves_that_alone(shared: Somewhere) -> None:
    async with shared.open() as store:
        await open_with(shared, "bobs", user_id="bob")
        await record(store, "ann", "elsewhere", conversation_id="bobs")
        before = await store.export_user("bob")
        assert len(before["events"]) == 1
        receipt = await store.erase_conversation("bobs")
        assert (receipt.counts["conversations"], receipt.counts["events"]) == (1, 0)
        await record(store, "ann", "elsewhere", conversation_id="bobs")
        await store.erase_user("ann")
        assert await store.export_user("bob") == before


@in_event_loop
async def test_one_agent_of_a_user_is_erased_alone(shared: Somewhere) -> None:
    async with shared.open() as store:
        await open_with(shared, "with desk", user_id="ann", agent_id=AGENT)
        await open_with(shared, "with guide", user_id="ann", agent_id="guide")
        await store.add_entry("guide", "ann", "profile", "likes maps")
        await record(store, "ann", "with desk")
        receipt = await store.erase_user("ann", agent_id=AGENT)
        assert (receipt.counts["sessions"], receipt.counts["memories"]) == (1, 1)
        left = await store.export_user("ann")
        assert [session["session_id"] for session in left["sessions"]] == ["with guide"]
        assert [memory["agent_id"] for memory in left["memories"]] == ["guide"]


@in_event_loop
async def test_sessions_in_tables_of_other_names_are_found(shared: Somewhere) -> None:
    tables: dict[str, Any] = {"sessions_table": "talks", "messages_table": "talk_items"}
    options = {**tables, **({"create_tables": True} if shared.create_tables else {})}
    session: Any = open_session(shared.url, "s", metadata=SessionMetadata(user_id="ann"), **options)
    await session.add_items([{"role": "user", "content": "hidden words"}])
    await session.aclose()
    async with shared.open() as store:
        (told,) = (await store.export_user("ann"))["sessions"]
        assert told["items"] == [{"role": "user", "content": "hidden words"}]
        receipt = await store.erase_user("ann")
        assert (receipt.counts["sessions"], receipt.counts["items"]) == (1, 1)
        assert marked(rows_of(shared.url), "hidden words") == {}
        await store.vacuum()


@in_event_loop
async def test_events_and_summaries_forget_an_erased_message(shared: Somewhere) -> None:
    async with shared.open() as store:
        messages = said("the secret word", "another word")
        await store.record_conversation(AGENT, "ann", messages, conversation_id="c1")
        async with EventLog(shared.url, create_tables=shared.create_tables) as log:
            await log.append("c1", [{"role": each["role"], "content": each["content"]} for each in messages])
            receipt = await store.erase_message("c1", "m0")
            assert receipt.counts["events"] == 1
            assert [event.text for event in await log.read("c1")] == [None, "another word"]


async def note(somewhere: Somewhere, key: str) -> EventLog:
    """A log in which something was said, with no session beside it."""
    log = EventLog(somewhere.url, create_tables=somewhere.create_tables)
    await log.append(key, [{"role": "user", "content": "the secret word"}])
    return log


@in_event_loop
async def test_a_log_without_a_session_is_no_other_tenant_s_whatever_they_call_a_conversation(
    shared: Somewhere,
) -> None:
    async with shared.open(tenant="other") as store, await note(shared, "s1") as log:
        messages = said("the secret word")
        await store.record_conversation(AGENT, "mallory", messages, conversation_id="s1")
        assert (await store.export_user("mallory"))["events"] == []
        assert (await store.erase_message("s1", "m0")).counts["events"] == 0
        assert (await store.erase_conversation("s1")).counts["events"] == 0
        await record(store, "mallory", "s1", conversation_id="s1")
        assert (await store.erase_user("mallory")).counts["events"] == 0
        assert [event.text for event in await log.read("s1")] == ["the secret word"]


@in_event_loop
async def test_a_log_of_a_session_is_of_the_tenant_that_the_session_names(shared: Somewhere) -> None:
    await open_with(shared, "s2", user_id="ann", data={"tenant": "there"})
    await open_with(shared, "s3", data={"tenant": "there"})
    for tenant, count in (("here", 0), ("default", 0), ("there", 1)):
        async with shared.open(tenant=tenant) as store:
            for key in ("s2", "s3"):
                await record(store, "ann", "elsewhere", conversation_id=key)
                assert (await store.erase_conversation(key)).counts["events"] == count, (tenant, key)


@in_event_loop
async def test_a_log_of_a_session_that_another_s_conversation_names_is_not_taken_by_its_name(
    shared: Somewhere,
) -> None:
    async with shared.open() as store, await note(shared, "s1") as log:
        await record(store, "bob", "s1")
        await record(store, "mallory", "elsewhere", conversation_id="s1")
        assert (await store.export_user("mallory"))["events"] == []
        assert (await store.erase_conversation("s1")).counts["events"] == 0
        assert await log.count("s1") == 1
        assert len((await store.export_user("bob"))["events"]) == 1
