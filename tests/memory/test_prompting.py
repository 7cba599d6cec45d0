"""The page and the tail of prompts: which page a conversation has, and what a tail says."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from recollect import MemoryStore, PromptMemory, PromptOptions, PromptOwner, estimate_tokens
from recollect.memory.prompting import PageMark
from recollect.memory.times import now
from recollect.testing.contract import in_event_loop

OPTIONS = PromptOptions()


@asynccontextmanager
async def known(*texts: str) -> AsyncIterator[tuple[MemoryStore, PromptOwner]]:
    """A store that knows something about Ada, in a conversation with her."""
    async with MemoryStore(":memory:", workers=0, embedder=None) as store:
        for text in texts:
            await store.add_entry("desk", "ada", "profile", text)
        yield store, PromptOwner(store, "desk", "ada", "one")


@in_event_loop
async def test_what_has_changed_leads_the_tail_and_what_is_superseded_no_longer_holds() -> None:
    async with known("The user lives in Porto.") as (store, owner):
        prompts = PromptMemory()
        first = await prompts.compose(owner, "Hello.", OPTIONS)
        (home,) = await store.list_entries("desk", "ada")
        moved = await store.edit_entry(home.content_id, "The user lives in Lisbon.")
        second = await prompts.compose(owner, "Where do I live?", OPTIONS)
    assert second.page == first.page
    lines = [line for line in second.tail.splitlines() if line.startswith("> - ")]
    assert lines == ["> - The user lives in Lisbon.", "> - no longer: The user lives in Porto."]
    assert second.changed == (moved.content_id, home.content_id)
    assert second.lines == (), "a change is said once"


@in_event_loop
async def test_a_new_wish_counts_at_once_as_a_wish() -> None:
    async with known("The user lives in Porto.") as (store, owner):
        prompts = PromptMemory()
        await prompts.compose(owner, "Hello.", OPTIONS)
        await store.add_entry("desk", "ada", "instruction", "The user wants short answers.")
        parts = await prompts.compose(owner, "Hello again.", OPTIONS)
    assert "The user wants short answers." in parts.tail.partition("Standing wishes")[2]
    assert parts.tail.count("short answers") == 1


@in_event_loop
async def test_an_entry_that_left_the_page_for_want_of_room_still_holds() -> None:
    options = PromptOptions(page_budget=130)
    async with known("The user has a small red bicycle.") as (store, owner):
        prompts = PromptMemory()
        first = await prompts.compose(owner, "Hello.", options)
        assert "bicycle" in first.page
        for number in range(9):
            text = f"The user has a severe allergy to food number {number}, of a rather rare kind."
            await store.add_entry("desk", "ada", "profile", text)
        assert "bicycle" not in (await store.page("desk", "ada", budget=130)).prompt
        parts = await prompts.compose(owner, "Hello again.", options)
    assert "no longer" not in parts.tail
    assert estimate_tokens({"role": "system", "content": parts.tail}) <= 1010


@in_event_loop
async def test_an_erased_fact_is_in_neither_place() -> None:
    async with known("The user lives in Porto.", "The user has a cat.") as (store, owner):
        prompts = PromptMemory()
        assert "cat" in (await prompts.compose(owner, "Hello.", OPTIONS)).page
        for entry in await store.list_entries("desk", "ada"):
            if "cat" in entry.text:
                await store.delete_entry(entry.content_id)
        parts = await prompts.compose(owner, "Do I have a cat?", OPTIONS)
    assert "cat" not in parts.page + parts.tail


@in_event_loop
async def test_a_process_goes_on_with_the_page_that_another_one_has_fixed() -> None:
    async with known("The user lives in Porto.") as (store, owner):
        first = await PromptMemory().compose(owner, "Hello.", OPTIONS)
        await store.add_entry("desk", "ada", "profile", "The user has a cat.")
        assert first.fixed_at is not None
        mark = PageMark(first.page_version, first.fixed_at, now())
        idle = mark._replace(used_at=now() - timedelta(hours=1))
        other = PromptMemory()
        assert (await other.compose(owner, "Hello.", OPTIONS, mark=mark)).page == first.page
        assert "cat" in (await PromptMemory().compose(owner, "Hello.", OPTIONS, mark=idle)).page
        assert other.has_page(owner, OPTIONS)
        assert not other.has_page(owner, PromptOptions(idle_seconds=0))
        later = PageMark(first.page_version, first.fixed_at, now() + timedelta(seconds=1))
        at_once = PromptOptions(idle_seconds=0)
        assert (await other.compose(owner, "Hello.", at_once, mark=later)).page == first.page
        assert "cat" in (await PromptMemory().compose(owner, "Hello.", OPTIONS)).page


@in_event_loop
async def test_a_turn_that_is_named_again_gets_the_same() -> None:
    async with known("The user lives in Porto.") as (store, owner):
        prompts = PromptMemory()
        first = await prompts.compose(owner, "Do I have a cat?", OPTIONS, turn="1")
        await store.add_entry("desk", "ada", "profile", "The user has a cat.")
        assert await prompts.compose(owner, "Do I have a cat?", OPTIONS, turn="1") == first
        assert "cat" in (await prompts.compose(owner, "Do I have a cat?", OPTIONS, turn="2")).tail


@in_event_loop
async def test_conversations_and_users_are_apart() -> None:
    async with known("The user lives in Porto.") as (store, owner):
        prompts = PromptMemory()
        await prompts.compose(owner, "Hello.", OPTIONS)
        await store.add_entry("desk", "ada", "profile", "The user has a cat.")
        other = PromptOwner(store, "desk", "ada", "two")
        assert "cat" in (await prompts.compose(other, "Hello.", OPTIONS)).page
        nobody = await prompts.compose(PromptOwner(store, "desk", "bob", "one"), "Hello.", OPTIONS)
    assert (nobody.page, nobody.tail, nobody.memories_used) == ("", "", 0)


@in_event_loop
async def test_what_the_model_sees_anyway_is_not_repeated() -> None:
    async with known() as (store, owner):
        said = "My sailing boat in the harbour is called Argo."
        await store.record_conversation("desk", "ada", [{"role": "user", "content": said}])
        question = "What is my sailing boat called?"
        assert "Argo" in (await PromptMemory().compose(owner, question, OPTIONS)).tail
        assert not (await PromptMemory().compose(owner, question, OPTIONS, seen=[said])).tail


@in_event_loop
async def test_nothing_of_an_erased_user_is_kept_for_prompts() -> None:
    async with known("The user lives in Porto.") as (store, owner):
        prompts = PromptMemory()
        before = await prompts.compose(owner, "Where do I live?", OPTIONS, turn="one")
        assert "Porto" in before.page
        await store.erase_user("ada")
        again = await prompts.compose(owner, "Where do I live?", OPTIONS, turn="one")
        assert (again.page, again.tail) == ("", "")
        assert prompts.parts_of(owner, None, None, OPTIONS).page == "", "also if memory fails now"
