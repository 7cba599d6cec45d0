"""Search over many users: exact where all documents are compared, and by the indexes of PostgreSQL."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recollect.errors import InvalidTypeError, InvalidValueError
from recollect.memory.hits import MemoryHit, MemorySearch, TurnHit, TurnSearch
from recollect.memory.store import MemoryStore, across
from recollect.memory.texts.terms import terms
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import by
from ..databases import Place
from ..vectors.kit import direction_of, embedder

WIDTH = 384  # a dimension that has an index
FOODS = ("nuts", "eggs", "milk", "fish", "wheat", "soy")
CITIES = ("Lisbon", "Oslo", "Graz", "Porto", "Turin")


def meaning_of(text: str) -> NDArray[np.float32]:
    """The sum of the directions of the words: texts with common words are near."""
    found = [direction_of(term, WIDTH) for term in terms(text)]
    return np.sum(found, axis=0) if found else direction_of("", WIDTH)


EMBEDDER = embedder(meaning_of, name="words", dimensions=WIDTH)


@pytest.fixture(params=["file", "asyncpg", "psycopg"])
def searched_place(request: pytest.FixtureRequest, tmp_path: Any) -> Place:
    if request.param == "file":
        return Place(str(tmp_path / "memory.db"))
    return Place(by(request.param, request.getfixturevalue("empty_postgres")))


@pytest.fixture
def by_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PostgreSQL use its indexes for any number of documents."""
    monkeypatch.setattr(across, "_MOST_ON_SERVER", 0)


async def fill(store: MemoryStore) -> None:
    """Sixty users, each with an allergy and a city, and with a conversation about a refund for some."""
    for number in range(60):
        user, food, city = f"user-{number}", FOODS[number % 6], CITIES[number % 5]
        agent = "shop" if number % 2 else "cook"
        await store.add_entry(agent, user, "profile", f"The user is allergic to {food}.", tags=[city.lower()])
        await store.add_entry(agent, user, "profile", f"The user lives in {city} since {1990 + number}.")
        topic = "I want a refund for my order" if number % 10 == 3 else "When do you open tomorrow"
        said = [
            {"role": "user", "content": f"{topic} {number}."},
            {"role": "assistant", "content": "Let me see."},
        ]
        await store.record_conversation(agent, user, said, tags=[city.lower()])
    await store.embed_pending()


def users_of(found: MemorySearch | TurnSearch) -> list[str]:
    return [hit.user_id for hit in found.hits]


def scores_of(hits: Sequence[MemoryHit] | Sequence[TurnHit]) -> dict[str, float]:
    return {hit.user_id: hit.score for hit in hits}


@in_event_loop
async def test_users_are_found_by_what_is_known_of_them(searched_place: Place) -> None:
    async with searched_place.open(embedder=EMBEDDER) as store:
        await fill(store)
        found = await store.search_memories_of_users("Which customers are allergic to nuts?")
        assert set(users_of(found)) == {f"user-{number}" for number in range(0, 60, 6)}
        assert all("nuts" in hit.entry.text for hit in found.hits)
        asked = await store.search_conversations_of_users("Who asked for a refund?", limit=6)
        assert set(users_of(asked)) == {f"user-{number}" for number in range(3, 60, 10)}
        assert {hit.agent_id for hit in asked.hits} == {"shop"}


@in_event_loop
async def test_a_search_of_one_user_has_the_scores_of_that_user(searched_place: Place) -> None:
    async with searched_place.open(embedder=EMBEDDER) as store:
        await fill(store)
        one = await store.search_memories("allergic to nuts", None, "user-6")
        same = await store.search_memories_of_users("allergic to nuts", ["user-6"])
        assert [(hit.entry.content_id, hit.score) for hit in same.hits] == [
            (hit.entry.content_id, hit.score) for hit in one.hits
        ]
        assert same.relevance == one.relevance
        assert set(users_of(same)) == {"user-6"}


@in_event_loop
async def test_filters_hold_over_many_users(searched_place: Place) -> None:
    async with searched_place.open(embedder=EMBEDDER) as store:
        await fill(store)
        await check_filters(store)


async def check_filters(store: MemoryStore) -> None:
    in_oslo = await store.search_memories_of_users("allergic to nuts", tags=["oslo"])
    assert set(users_of(in_oslo)[:2]) == {"user-6", "user-36"}
    some = await store.search_memories_of_users("allergic to nuts", ["user-0", "user-1", "user-12"])
    assert set(users_of(some)[:2]) == {"user-0", "user-12"}
    assert set(users_of(some)) <= {"user-0", "user-1", "user-12"}
    shop = await store.search_memories_of_users("allergic to eggs", agent_id="cook")
    assert {hit.agent_id for hit in shop.hits} == {"cook"}
    said = await store.search_conversations_of_users("refund", role="assistant")
    assert all(hit.message.role == "assistant" for hit in said.hits)
    later = await store.search_conversations_of_users("refund", since="2999-01-01")
    assert later.hits == ()
    tagged = await store.search_conversations_of_users("refund", tags=["porto"])
    assert set(users_of(tagged)) <= {f"user-{number}" for number in range(3, 60, 5)}
    assert tagged.hits


@in_event_loop
async def test_what_is_new_or_erased_is_seen_at_once(searched_place: Place) -> None:
    async with searched_place.open(embedder=EMBEDDER) as store:
        await fill(store)
        await store.search_memories_of_users("allergic to kiwis")
        await store.add_entry("cook", "newcomer", "profile", "The user is allergic to kiwis.")
        found = await store.search_memories_of_users("allergic to kiwis", limit=1)
        assert users_of(found) == ["newcomer"]
        await store.erase_user("newcomer")
        found = await store.search_memories_of_users("allergic to kiwis")
        assert "newcomer" not in users_of(found)


@in_event_loop
async def test_nothing_crosses_a_tenant(searched_place: Place) -> None:
    async with searched_place.open(embedder=EMBEDDER, all_tenants=True) as store:
        await check_tenants(store)


async def check_tenants(store: MemoryStore) -> None:
    for tenant in ("a", "b"):
        view = store.for_tenant(tenant)
        await view.add_entry("cook", "ada", "profile", f"The user is allergic to nuts of {tenant}.")
        said = [{"role": "user", "content": f"I am allergic to nuts of {tenant}."}]
        await view.record_conversation("cook", "ada", said)
        await view.embed_pending()
    for tenant in ("a", "b"):
        view = store.for_tenant(tenant)
        for users in (None, ["ada"]):
            known = await view.search_memories_of_users("allergic to nuts", users)
            assert [hit.entry.text for hit in known.hits] == [f"The user is allergic to nuts of {tenant}."]
            told = await view.search_conversations_of_users("allergic to nuts", users)
            assert [hit.message.content for hit in told.hits] == [f"I am allergic to nuts of {tenant}."]
    assert (await store.for_tenant("c").search_memories_of_users("allergic to nuts")).hits == ()


@in_event_loop
async def test_arguments_that_make_no_sense_are_refused(file_place: Place) -> None:
    async with file_place.open() as store:
        search = store.search_memories_of_users
        for error, arguments, options in (
            (InvalidTypeError, ("nuts", "ada"), {}),
            (InvalidValueError, ("nuts", []), {}),
            (InvalidValueError, ("nuts", ["u"] * 1001), {}),
            (InvalidValueError, ("nuts",), {"limit": 1_000_000}),
            (InvalidTypeError, ("nuts",), {"limit": None}),
            (InvalidTypeError, (7,), {}),
        ):
            with pytest.raises(error):
                await search(*arguments, **options)


@in_event_loop
async def test_a_file_with_too_much_to_compare_says_what_to_do(
    file_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(across, "_MOST_IN_FILE", 2)
    async with file_place.open() as store:
        for user in ("ada", "bob", "eve"):
            await store.add_entry("cook", user, "profile", "The user is allergic to nuts.")
        with pytest.raises(
            InvalidValueError, match="at most 2 entries: name fewer users or an agent, or use"
        ):
            await store.search_memories_of_users("nuts")
        found = await store.search_memories_of_users("nuts", ["ada", "bob"])
        assert set(users_of(found)) == {"ada", "bob"}


# --- by the indexes of PostgreSQL ---


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
@in_event_loop
async def test_candidates_have_the_scores_of_an_exact_search(
    empty_postgres: str, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Place(by(driver, empty_postgres)).open(embedder=EMBEDDER) as store:
        await fill(store)
        for question in ("Who is allergic to nuts?", "lives in Lisbon", "refund for order 13"):
            monkeypatch.setattr(across, "_MOST_ON_SERVER", 5000)
            exact = await store.search_memories_of_users(question)
            exact_said = await store.search_conversations_of_users(question)
            monkeypatch.setattr(across, "_MOST_ON_SERVER", 0)
            found = await store.search_memories_of_users(question)
            said = await store.search_conversations_of_users(question)
            assert scores_of(found.hits) == pytest.approx(scores_of(exact.hits))
            # How rare a word is among conversations is estimated.
            assert scores_of(said.hits) == pytest.approx(scores_of(exact_said.hits), rel=0.02)
            assert (found.relevance, said.relevance) == pytest.approx((exact.relevance, exact_said.relevance))


@pytest.mark.usefixtures("by_indexes")
@in_event_loop
async def test_filters_and_tenants_hold_by_the_indexes(empty_postgres: str) -> None:
    async with Place(by("asyncpg", empty_postgres)).open(embedder=EMBEDDER, all_tenants=True) as store:
        await fill(store)
        await check_filters(store)
        await check_tenants(store)


@pytest.mark.usefixtures("by_indexes")
@in_event_loop
async def test_chinese_is_found_by_its_words_without_an_embedder(empty_postgres: str) -> None:
    async with Place(by("asyncpg", empty_postgres)).open(workers=1) as store:
        for user, text in (("ada", "用户对花生过敏。"), ("bob", "用户住在上海。"), ("eve", "用户喜欢爬山。")):
            await store.add_entry("cook", user, "profile", text)
            await store.record_conversation("cook", user, [{"role": "user", "content": text}])
        await store.drain()
        assert users_of(await store.search_memories_of_users("谁对花生过敏？"))[:1] == ["ada"]
        assert users_of(await store.search_conversations_of_users("谁住在上海？"))[:1] == ["bob"]


@pytest.mark.usefixtures("by_indexes")
@in_event_loop
async def test_a_dimension_without_an_index_is_said(empty_postgres: str) -> None:
    async with Place(by("asyncpg", empty_postgres)).open(embedder=embedder()) as store:
        await store.add_entry("cook", "ada", "profile", "The user is allergic to nuts.")
        await store.embed_pending()
        found = await store.search_memories_of_users("nuts")
        assert users_of(found) == ["ada"]
        assert "there is no index for vectors of this dimension: all are compared" in found.warnings


@pytest.mark.usefixtures("by_indexes")
@in_event_loop
async def test_the_past_needs_fewer_entries(empty_postgres: str) -> None:
    async with Place(by("asyncpg", empty_postgres)).open() as store:
        await store.add_entry("cook", "ada", "profile", "The user is allergic to nuts.")
        with pytest.raises(InvalidValueError, match="as_of cannot be used over so many entries"):
            await store.search_memories_of_users("nuts", as_of="2020-01-01T00:00:00Z")
