"""Pages of a store: now, in the past, after changes and after erasures."""

import asyncio

import pytest

from recollect.errors import InvalidTypeError, InvalidValueError
from recollect.memory.manager import ConversationManager
from recollect.memory.offline import OfflineExtractor
from recollect.memory.page import UserPage
from recollect.memory.store import MemoryStore
from recollect.memory.store.pages import PageCache
from recollect.memory.times import now
from recollect.testing.contract import in_event_loop

from ..databases import Place

AGENT, USER = "assistant", "ada"


def texts(page: UserPage) -> list[str]:
    return [line.text for line in page.lines]


async def say(store: MemoryStore, date: str, text: str) -> str:
    message = {"role": "user", "content": text, "created_at": f"{date}T12:00:00Z"}
    conversation = await store.record_conversation(AGENT, USER, [message])
    await store.drain(60)
    return conversation.conversation_id


@in_event_loop
async def test_a_page_has_what_is_known_with_its_evidence(place: Place) -> None:
    async with place.open(workers=1, extractor=OfflineExtractor()) as store:
        conversation_id = await say(store, "2026-05-03", "I am allergic to peanuts.")
        page = await store.page(AGENT, USER)
        (entry,) = await store.list_entries(AGENT, USER)
        (line,) = page.lines
        assert (line.text, line.content_id, line.evidence) == (entry.text, entry.content_id, entry.evidence)
        assert line.evidence[0].conversation_id == conversation_id
        assert page.text.endswith(f"- {entry.text} [m1]\n")


@in_event_loop
async def test_a_page_of_the_past_has_what_was_known_then(place: Place) -> None:
    async with place.open(workers=1, extractor=OfflineExtractor()) as store:
        await say(store, "2026-05-03", "I live in Porto.")
        await say(store, "2026-06-03", "I moved to Lisbon.")
        assert texts(await store.page(AGENT, USER, as_of="2026-05-01")) == []
        (porto,) = texts(await store.page(AGENT, USER, as_of="2026-05-10"))
        (lisbon,) = texts(await store.page(AGENT, USER))
        assert ("Porto" in porto, "Lisbon" in lisbon) == (True, True)


@in_event_loop
async def test_every_change_of_an_entry_is_on_the_next_page(place: Place) -> None:
    async with place.open() as store:
        tea = await store.add_entry(AGENT, USER, "mind", "The user likes tea.")
        first = await store.page(AGENT, USER)
        jazz = await store.add_entry(AGENT, USER, "mind", "The user likes jazz.")
        second = await store.page(AGENT, USER)
        assert texts(second) == ["The user likes tea.", "The user likes jazz."]
        await store.edit_entry(tea.content_id, "The user likes green tea.")
        assert texts(await store.page(AGENT, USER)) == ["The user likes jazz.", "The user likes green tea."]
        await store.reject_entry(jazz.content_id)
        assert texts(await store.page(AGENT, USER)) == ["The user likes green tea."]
        await store.confirm_entry(jazz.content_id)
        assert "The user likes jazz." in texts(await store.page(AGENT, USER))
        await store.delete_memory(tea.memory_id)
        assert texts(await store.page(AGENT, USER)) == []
        assert first.version != second.version


@in_event_loop
async def test_an_unchanged_page_is_not_composed_again_and_a_changed_one_is(place: Place) -> None:
    async with place.open() as store, place.open() as other:
        await store.add_entry(AGENT, USER, "mind", "The user likes tea.")
        page = await store.page(AGENT, USER)
        assert await store.page(AGENT, USER) is page
        assert await store.page(AGENT, USER, budget=601) is not page
        if place.url == ":memory:":
            return
        assert await other.page(AGENT, USER) == page
        await other.add_entry(AGENT, USER, "mind", "The user likes jazz.")
        assert len((await store.page(AGENT, USER)).lines) == 2


@in_event_loop
async def test_a_cached_page_ends_when_an_entry_expires(place: Place) -> None:
    async with place.open() as store:
        await store.add_entry(AGENT, USER, "event", "The user ran.", expires_at="2999-01-01")
        page = await store.page(AGENT, USER)
        assert texts(page)
        (memory,) = await store.list_memories(AGENT, USER)
        cache: PageCache = store._shared.pages
        ((key, cached),) = cache._pages.items()
        assert key[0] == memory.memory_id
        assert cached.until is not None
        assert cached.until.year == 2999
        cache.add(key, cached._replace(until=now()))
        assert await store.page(AGENT, USER) is not page


@in_event_loop
async def test_an_erased_fact_is_on_no_page_of_the_past_and_in_no_cache(place: Place) -> None:
    async with place.open(workers=1, extractor=OfflineExtractor()) as store:
        conversation_id = await say(store, "2026-05-03", "I am allergic to peanuts.")
        await say(store, "2026-06-03", "I live in Porto.")
        assert "peanuts" in (await store.page(AGENT, USER)).text
        await store.erase_conversation(conversation_id)
        assert store._shared.pages._pages == {}
        pages = [await store.page(AGENT, USER), await store.page(AGENT, USER, as_of="2026-05-10")]
        pages += await store.page_history(AGENT, USER)
        assert not any("peanuts" in page.text + page.prompt for page in pages)
        assert "Porto" in pages[0].text


@in_event_loop
async def test_the_history_has_each_version_once_the_latest_first(place: Place) -> None:
    async with place.open(workers=1, extractor=OfflineExtractor()) as store:
        await say(store, "2026-05-03", "I live in Porto.")
        await say(store, "2026-06-03", "I moved to Lisbon.")
        await say(store, "2026-07-03", "I am allergic to peanuts.")
        history = await store.page_history(AGENT, USER)
        assert [page.as_of and page.as_of.date().isoformat() for page in history] == [
            "2026-07-03",
            "2026-06-03",
            "2026-05-03",
        ]
        assert history[0].version == (await store.page(AGENT, USER)).version
        for page in history:
            assert (await store.page(AGENT, USER, as_of=page.as_of)) == page
        changes = history[1].changes_since(history[2])
        assert ("Lisbon" in changes.added[0].text, "Porto" in changes.removed[0].text) == (True, True)
        assert await store.page_history(AGENT, USER, limit=2) == history[:2]
        assert await store.page_history(AGENT, "nobody") == []


@in_event_loop
async def test_each_agent_user_and_tenant_has_a_page_of_its_own(place: Place) -> None:
    async with place.open(all_tenants=True) as store:
        await store.add_entry(AGENT, USER, "mind", "The user likes tea.")
        assert len((await store.page(AGENT, USER)).lines) == 1
        for page in (
            await store.page("other", USER),
            await store.page(AGENT, "bo"),
            await store.for_tenant("acme").page(AGENT, USER),
        ):
            assert (page.text, page.prompt, page.lines) == ("", "", ())


@in_event_loop
async def test_a_page_is_read_while_the_memory_changes(place: Place) -> None:
    async with place.open() as store:

        async def read() -> None:
            for _ in range(20):
                await store.page(AGENT, USER)

        adding = [store.add_entry(AGENT, USER, "mind", f"The user likes {number}.") for number in range(20)]
        await asyncio.gather(*adding, *(read() for _ in range(4)))
        assert len((await store.page(AGENT, USER)).lines) == 20


@in_event_loop
async def test_a_wrong_budget_or_time_is_refused(file_place: Place) -> None:
    async with file_place.open() as store:
        for budget in (-1, 10**6):
            with pytest.raises(InvalidValueError):
                await store.page(AGENT, USER, budget=budget)
        with pytest.raises(InvalidTypeError):
            await store.page(AGENT, USER, budget=True)
        with pytest.raises(InvalidValueError):
            await store.page(AGENT, USER, as_of="yesterday")


def test_the_manager_reads_pages(file_place: Place) -> None:
    with ConversationManager(file_place.url, workers=0, embedder=None) as manager:
        manager.add_entry(AGENT, USER, "mind", "The user likes tea.")
        assert texts(manager.page(AGENT, USER)) == ["The user likes tea."]
        assert len(manager.page_history(AGENT, USER)) == 1
