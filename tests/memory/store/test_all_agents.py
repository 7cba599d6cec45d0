"""Search over all agents of a user, and the list of users."""

from recollect.testing.contract import in_event_loop

from ..databases import Place


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


@in_event_loop
async def test_a_search_without_an_agent_ranks_what_all_agents_know_together(place: Place) -> None:
    async with place.open() as store:
        await store.add_entry("cook", "ada", "profile", "The user is allergic to peanuts.")
        await store.add_entry("coach", "ada", "profile", "The user is allergic to bee stings and pollen.")
        await store.add_entry("coach", "ada", "event", "The user ran in Lisbon.")
        await store.add_entry("cook", "bob", "profile", "The user is allergic to peanuts and cashews.")
        found = await store.search_memories("allergic to peanuts", None, "ada")
        assert [(hit.agent_id, hit.entry.text) for hit in found.hits] == [
            ("cook", "The user is allergic to peanuts."),
            ("coach", "The user is allergic to bee stings and pollen."),
        ]
        one = await store.search_memories("allergic to peanuts", "coach", "ada")
        assert [hit.agent_id for hit in one.hits] == ["coach"]
        # Ranked alone it is the best there is; beside what fits better it is not.
        assert found.hits[1].score < one.hits[0].score
        assert (await store.search_memories("allergic", None, "nobody")).hits == ()
        newer = await store.add_entry("cook", "ada", "profile", "The user is allergic to peanuts and eggs.")
        again = await store.search_memories("eggs", None, "ada")
        assert [hit.entry.content_id for hit in again.hits] == [newer.content_id]
        recalled = await store.recall("allergic", None, "ada")
        assert "bee stings" in recalled.text
        assert "peanuts" in recalled.text
        assert "cashews" not in recalled.text


@in_event_loop
async def test_messages_of_all_agents_are_found_within_a_session_too(place: Place) -> None:
    async with place.open() as store:
        for agent in ("cook", "coach"):
            for session in ("monday", "tuesday"):
                text = f"On {session} I told the {agent} about my boat."
                await store.record_conversation(agent, "ada", said(text), session_id=session)
        found = await store.search_conversations("boat", None, "ada")
        assert sorted((hit.agent_id, hit.session_id) for hit in found.hits) == [
            ("coach", "monday"),
            ("coach", "tuesday"),
            ("cook", "monday"),
            ("cook", "tuesday"),
        ]
        monday = await store.search_conversations("boat", None, "ada", session_id="monday")
        assert {(hit.agent_id, hit.session_id) for hit in monday.hits} == {
            ("coach", "monday"),
            ("cook", "monday"),
        }


@in_event_loop
async def test_the_past_of_all_agents_can_be_searched(file_place: Place) -> None:
    async with file_place.open() as store:
        old = await store.add_entry("cook", "ada", "profile", "The user likes plums.")
        new = await store.edit_entry(old.content_id, "The user likes pears.")
        before = await store.search_memories("likes", None, "ada", as_of=old.learned_at)
        assert [hit.entry.content_id for hit in before.hits] == [old.content_id]
        now = await store.search_memories("likes", None, "ada")
        assert [hit.entry.content_id for hit in now.hits] == [new.content_id]


@in_event_loop
async def test_what_is_erased_of_one_agent_is_no_longer_found_over_all(file_place: Place) -> None:
    async with file_place.open() as store:
        await store.record_conversation("cook", "ada", said("My boat is blue."))
        await store.record_conversation("coach", "ada", said("My boat is fast."))
        assert len((await store.search_conversations("boat", None, "ada")).hits) == 2
        await store.erase_user("ada", agent_id="cook")
        found = await store.search_conversations("boat", None, "ada")
        assert [hit.agent_id for hit in found.hits] == ["coach"]


@in_event_loop
async def test_users_are_listed_once_each_page_by_page(place: Place) -> None:
    async with place.open() as store:
        assert await store.list_users() == []
        names = ["ada", "bob", "x" * 4000, "用户", "a/b"]
        for name in names:
            await store.add_entry("cook", name, "profile", "The user sails.")
        await store.record_conversation("coach", "ada", said("I sail."))
        listed, after = [], None
        while page := await store.list_users(after=after, limit=2):
            listed += page
            after = page[-1].position
        assert sorted(user.user_id for user in listed) == sorted(names)
        assert {user.user_id: user.memory_count for user in listed} == {**dict.fromkeys(names, 1), "ada": 2}
        memory = await store.get_memory("cook", "bob")
        assert memory is not None
        bob = next(user for user in listed if user.user_id == "bob")
        assert (bob.created_at, bob.updated_at) == (memory.created_at, memory.updated_at)
        await store.erase_user("bob")
        assert "bob" not in {user.user_id for user in await store.list_users()}


@in_event_loop
async def test_the_users_of_another_tenant_are_not_listed(file_place: Place) -> None:
    async with file_place.open(all_tenants=True) as store:
        await store.for_tenant("a").add_entry("cook", "ada", "profile", "The user sails.")
        assert [user.user_id for user in await store.for_tenant("a").list_users()] == ["ada"]
        assert await store.for_tenant("b").list_users() == []
        assert (await store.for_tenant("b").search_memories("sails", None, "ada")).hits == ()
