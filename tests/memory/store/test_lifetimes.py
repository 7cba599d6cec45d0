"""How long entries hold: expiry, confirmation by repetition, fading, and purging."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.errors import ConflictError
from recollect.memory.entry import ContentType, Entry, Evidence
from recollect.memory.lifetime import DOUBTFUL_BELOW, parse_expiry, state_of, trust_in
from recollect.memory.pipeline.stages import Answer, Candidate, Excerpt, Mind, Modification, Update
from recollect.memory.times import now
from recollect.testing.contract import in_event_loop

from ..databases import Place

SAID = datetime(2025, 1, 1, tzinfo=UTC)


def entry_of(kind: ContentType = "profile", confidence: float = 0.8, messages: int = 1) -> Entry:
    evidence = tuple(Evidence("c", f"m{number}", "r") for number in range(messages))
    return Entry("e", "m", kind, "The user sails.", SAID, confidence, SAID, evidence=evidence)


def after(days: int) -> datetime:
    return SAID + timedelta(days=days)


def test_the_trust_in_what_was_said_once_is_halved_in_a_year() -> None:
    assert trust_in(entry_of(), SAID) == 0.8
    assert trust_in(entry_of(), after(365)) == pytest.approx(0.4)
    assert trust_in(entry_of("mind"), after(90)) == pytest.approx(0.4)
    assert trust_in(entry_of(messages=2), after(730)) == pytest.approx(0.4)


def test_events_and_the_words_of_people_do_not_fade() -> None:
    assert trust_in(entry_of("event"), after(10_000)) == 0.8
    assert trust_in(replace(entry_of(), said_at=None), after(10_000)) == 0.8
    assert trust_in(replace(entry_of(), data={"edited": True}), after(10_000)) == 0.8


def test_a_confirmation_starts_the_fading_anew() -> None:
    confirmed = replace(entry_of(), last_confirmed_at=after(365))
    assert trust_in(confirmed, after(365)) == 0.8
    assert trust_in(confirmed, after(0)) == 0.8  # a clock that is behind


def test_the_states_of_an_entry() -> None:
    entry = entry_of()
    assert state_of(entry, after(100)) == "current"
    assert state_of(entry, after(1000)) == "doubtful"
    assert state_of(entry_of(confidence=DOUBTFUL_BELOW - 0.01), SAID) == "doubtful"
    assert state_of(replace(entry, expires_at=after(5)), after(5)) == "expired"
    assert state_of(replace(entry, expires_at=after(5)), after(4)) == "current"
    assert state_of(replace(entry, retired_at=after(1)), after(0)) == "retired"
    assert state_of(replace(entry, retired_at=after(1), rejected_at=after(1)), after(0)) == "rejected"


def test_an_extractor_may_find_any_expiry() -> None:
    assert parse_expiry("2024-05-07") == datetime(2024, 5, 7, 23, 59, 59, 999999, UTC)
    assert parse_expiry("2024-05-07T10:00:00Z") == datetime(2024, 5, 7, 10, tzinfo=UTC)
    assert parse_expiry("next Friday") is None
    assert parse_expiry(None) is None


@in_event_loop
async def test_an_expired_entry_is_not_found_but_stays_visible(place: Place) -> None:
    async with place.open(workers=0, embedder=None) as store:
        gone = await store.add_entry("agent", "ada", "profile", "Visits Porto.", expires_at="2020-05-07")
        wish = await store.add_entry("agent", "ada", "instruction", "Be brief.", expires_at="2020")
        holds = await store.add_entry("agent", "ada", "profile", "Likes Porto.", expires_at="2999-01")
        found = await store.search_memories("Porto", "agent", "ada")
        recalled = await store.recall("Porto", "agent", "ada")
        assert [hit.entry.content_id for hit in found.hits] == [holds.content_id]
        assert "Visits" not in recalled.text
        assert recalled.instructions == ()
        assert [each.content_id for each in await store.list_entries("agent", "ada")] == [holds.content_id]
        everything = await store.list_entries("agent", "ada", include_retired=True)
        memory = await store.get_memory("agent", "ada")
        (outline,) = await store.list_memories(user_id="ada")
        why = await store.why(gone.content_id)
    assert [each.to_dict()["state"] for each in everything] == ["expired", "expired", "current"]
    assert everything[1].content_id == wish.content_id
    assert memory is not None
    assert (memory.profile_content, memory.instruction_content) == (["Likes Porto."], [])
    assert outline.counts["profile"] == 1
    assert why is not None
    assert why.to_dict()["entry"]["state"] == "expired"


@in_event_loop
async def test_an_entry_is_found_until_it_expires_and_in_the_past(place: Place) -> None:
    async with place.open(workers=0, embedder=None) as store:
        soon = now() + timedelta(seconds=0.5)
        await store.add_entry("agent", "ada", "profile", "Is in Porto.", expires_at=soon)
        before = now()
        assert len((await store.search_memories("Porto", "agent", "ada")).hits) == 1
        while now() <= soon:
            pass
        assert (await store.search_memories("Porto", "agent", "ada")).hits == ()
        then = await store.search_memories("Porto", "agent", "ada", as_of=before)
        assert len(then.hits) == 1
        assert len(await store.list_entries("agent", "ada", as_of=before)) == 1
        assert await store.list_entries("agent", "ada", as_of=now()) == []


@in_event_loop
async def test_an_edit_keeps_the_expiry_unless_another_is_given(place: Place) -> None:
    async with place.open(workers=0) as store:
        first = await store.add_entry("agent", "ada", "profile", "In Porto.", expires_at="2999")
        kept = await store.edit_entry(first.content_id, "In Porto, on business.")
        assert kept.expires_at == first.expires_at is not None
        cleared = await store.edit_entry(kept.content_id, "Lives in Porto.", expires_at=None)
        assert cleared.expires_at is None


class Repeating:
    """An extractor that finds one fact in each conversation, with an expiry."""

    model = "repeating"

    def __init__(self, expires_at: str | None) -> None:
        self._expires_at = expires_at

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        cited = (excerpt.messages[0].message_id,)
        fact = Candidate("profile", "The user sails.", cited, 0.6, expires_at=self._expires_at)
        return Answer(Modification("", (fact,)))

    async def update(self, _: Excerpt, __: Sequence[Candidate], ___: Sequence[Entry]) -> Answer[Update]:
        return Answer(Update(()))

    async def mind(self, _: Excerpt, __: Sequence[Entry]) -> Answer[Mind]:
        return Answer(Mind("", None, ()))

    async def aclose(self) -> None:
        pass


def said(at: datetime) -> list[dict[str, object]]:
    return [{"role": "user", "content": "I sail.", "created_at": at}]


@in_event_loop
async def test_what_is_said_again_is_confirmed(place: Place) -> None:
    async with place.open(workers=1, extractor=Repeating(None)) as store:
        await store.record_conversation("agent", "ada", said(SAID))
        await store.drain(60)
        (once,) = await store.list_entries("agent", "ada")
        assert (once.confidence, once.last_confirmed_at) == (0.6, None)
        await store.record_conversation("agent", "ada", said(after(30)))
        await store.drain(60)
        (twice,) = await store.list_entries("agent", "ada")
        await store.record_conversation("agent", "ada", said(after(10)))
        await store.drain(60)
        (late,) = await store.list_entries("agent", "ada")
        why = await store.why(late.content_id)
    assert (twice.confidence, twice.last_confirmed_at, twice.said_at) == (0.8, after(30), after(30))
    assert (late.confidence, late.last_confirmed_at) == (0.8, after(30))  # it was said before that
    assert why is not None
    assert why.to_dict()["entry"]["last_confirmed_at"] == "2025-01-31T00:00:00Z"


@in_event_loop
async def test_what_is_said_again_after_it_expired_is_a_new_entry(place: Place) -> None:
    async with place.open(workers=1, extractor=Repeating("2020")) as store:
        for days in (0, 30):
            await store.record_conversation("agent", "ada", said(after(days)))
            await store.drain(60)
        assert await store.list_entries("agent", "ada") == []
        both = await store.list_entries("agent", "ada", include_retired=True)
    assert [each.to_dict()["state"] for each in both] == ["expired", "expired"]


@in_event_loop
async def test_doubtful_entries_are_recalled_last(file_place: Place) -> None:
    async with file_place.open(workers=0, embedder=None) as store:
        doubted = await store.add_entry("agent", "ada", "profile", "Porto Porto Porto.", confidence=0.1)
        trusted = await store.add_entry("agent", "ada", "profile", "The user once lived near Porto.")
        found = await store.search_memories("Porto", "agent", "ada")
        recalled = await store.recall("Porto", "agent", "ada")
    assert [hit.entry.content_id for hit in found.hits] == [doubted.content_id, trusted.content_id]
    assert [hit.entry.content_id for hit in recalled.entries] == [trusted.content_id, doubted.content_id]


@in_event_loop
async def test_expired_entries_are_purged_on_demand_only(place: Place) -> None:
    async with place.open(workers=0) as store:
        for year in ("2019", "2020", "2021"):
            await store.add_entry("agent", "ada", "profile", f"Until {year}.", expires_at=year)
        await store.add_entry("agent", "bo", "profile", "Has no end.")
        assert await store.purge_expired_entries("2021-06-01", limit=1) == 1
        assert await store.purge_expired_entries("2021-06-01") == 1
        assert await store.purge_expired_entries("2021-06-01") == 0
        left = await store.list_entries("agent", "ada", include_retired=True)
        assert len(await store.list_entries("agent", "bo")) == 1
    assert [each.text for each in left] == ["Until 2021."]


@in_event_loop
async def test_confirming_an_expired_entry_removes_its_end(place: Place) -> None:
    async with place.open(workers=0) as store:
        entry = await store.add_entry(
            "agent", "ada", "profile", "In Porto.", expires_at="2020", confidence=0.2
        )
        confirmed = await store.confirm_entry(entry.content_id)
        assert confirmed.expires_at is None
        assert confirmed.confidence == 1
        assert confirmed.last_confirmed_at is not None
        assert len(await store.list_entries("agent", "ada")) == 1
        with pytest.raises(ConflictError):
            await store.confirm_entry("no-such-entry")
