"""What rests on a plan that a model ends or moves is in doubt, until the message about it is erased."""

from typing import Any

import pytest

from recollect.memory.lifetime import state_of
from recollect.memory.store import MemoryStore
from recollect.memory.times import now
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer

from ..databases import Place
from ..extraction.kit import memory
from .kit import LONGEST
from .test_trust import answering, opened

REASON = "what it rests on has changed"
FLIGHT = "The user flies to Japan on 3 October 2026."
PARTS = {
    "The user has a hotel in Kyoto from 4 to 12 October.": ("event", "2026-10-04", "2026-10-12"),
    "The user is on leave until 14 October.": ("event", "2026-10-02", "2026-10-14"),
    "Mara sits the user's dog while the user is away.": ("profile", None, None),
}
OTHERS = {
    "The user sees the dentist on 5 October 2026.": ("event", "2026-10-05", None),
    "The user loves Japan.": ("profile", None, None),
    "The user has leave in August.": ("event", "2026-08", None),
}


async def say(store: MemoryStore, server: ProviderServer, text: str, day: str, *memories: Any) -> str:
    server.chat.reply_always(answering(*memories))
    said = [{"role": "user", "content": text}]
    conversation = await store.record_conversation("agent", "user", said, created_at=f"{day}T10:00:00Z")
    await store.drain(LONGEST)
    return conversation.conversation_id


async def plan(store: MemoryStore, server: ProviderServer, **texts: Any) -> str:
    known = {FLIGHT: ("event", "2026-10-03", None), **PARTS, **OTHERS, **texts}
    said = [
        memory(text, "we fly to Japan", kind=kind, date=since, until=until)
        for text, (kind, since, until) in known.items()
    ]
    words = "we fly to Japan from 2 to 14 October 2026, 3 October, Mara, Kyoto, August, 5 October"
    return await say(store, server, words, "2026-07-01", *said)


async def states(store: MemoryStore) -> dict[str, tuple[str, Any]]:
    found = await store.list_entries("agent", "user")
    return {entry.text: (state_of(entry, now()), entry.data.get("doubt")) for entry in found}


def cancelled(**more: Any) -> dict[str, Any]:
    fields = {"op": "end", "replaces": [FLIGHT], "kind": "event", **more}
    return memory("The flight to Japan is cancelled.", "Japan is off", **fields)


@in_event_loop
async def test_what_rests_on_a_cancelled_plan_is_doubtful_and_says_why(
    place: Place, server: ProviderServer
) -> None:
    async with opened(place, server, infers_after=0) as store:
        await plan(store, server)
        second = await say(store, server, "Japan is off, sadly", "2026-07-08", cancelled())
        after = await states(store)
        assert {text for text, state in after.items() if state == ("doubtful", REASON)} == set(PARTS)
        assert FLIGHT not in after

        entries = {entry.text: entry for entry in await store.list_entries("agent", "user")}
        hotel = next(text for text in PARTS if "hotel" in text)
        why = await store.why(entries[hotel].content_id)
        assert why is not None
        assert "Japan is off, sadly" in [quote.content for quote in why.evidence]
        changed = await store.get_entry(why.entry.data["rests_on"])
        assert changed is not None
        assert changed.text == FLIGHT
        assert entries[hotel].valid_to == "2026-10-12"

        block = (await store.recall("Mara and the dog?", "agent", "user", min_relevance=0)).text
        assert "while the user is away. (may no longer hold)" in block

        await store.erase_conversation(second)
        assert await states(store) == dict.fromkeys([FLIGHT, *PARTS, *OTHERS], ("current", None))


@in_event_loop
async def test_a_plan_that_moves_makes_its_parts_doubtful(file_place: Place, server: ProviderServer) -> None:
    later = memory(
        "The user flies to Japan on 17 October 2026.",
        "moved to the 17th",
        kind="event",
        date="2026-10-17",
        op="replace",
        replaces=[FLIGHT],
    )
    async with opened(file_place, server, infers_after=0) as store:
        await plan(store, server)
        await say(store, server, "moved to the 17th of October", "2026-07-08", later)
        after = await states(store)
        assert {text for text, state in after.items() if state == ("doubtful", REASON)} == set(PARTS)


@pytest.mark.parametrize("reworded", ["The user flies to Japan on 3 October 2026 at nine.", FLIGHT])
@in_event_loop
async def test_a_plan_that_is_said_in_other_words_changes_nothing(
    file_place: Place, server: ProviderServer, reworded: str
) -> None:
    same = memory(reworded, "nine", kind="event", date="2026-10-03", op="replace", replaces=[FLIGHT])
    async with opened(file_place, server, infers_after=0) as store:
        await plan(store, server)
        await say(store, server, "we fly at nine", "2026-07-08", same)
        assert {state for state, _ in (await states(store)).values()} == {"current"}


@in_event_loop
async def test_what_is_said_to_stay_is_certain(file_place: Place, server: ProviderServer) -> None:
    leave = next(text for text in PARTS if "leave" in text)
    keeps = memory(leave, "I keep my leave", op="confirm", replaces=[leave])
    async with opened(file_place, server, infers_after=0) as store:
        await plan(store, server)
        mine = await store.add_entry("agent", "user", "event", "The user has a room in Japan.")
        await say(store, server, "Japan is off, but I keep my leave", "2026-07-08", cancelled(), keeps)
        after = await states(store)
        assert after[leave][0] == after[mine.text][0] == "current"
        assert [state for state, _ in after.values()].count("doubtful") == 2


@in_event_loop
async def test_a_model_names_what_it_makes_doubtful(place: Place, server: ProviderServer) -> None:
    suitcase, other = "The user wants a bigger suitcase.", "The user has a bike."
    async with opened(place, server, infers_after=0) as store:
        said = [memory(text, "a bigger suitcase") for text in (suitcase, other)]
        await say(store, server, "I need a bigger suitcase", "2026-07-01", *said)
        off = memory("The user stays at home in autumn.", "we stay at home", doubts=[suitcase, "e99", "x"])
        await say(store, server, "we stay at home in autumn", "2026-07-08", off)
        after = await states(store)
        assert after == {
            suitcase: ("doubtful", REASON),
            other: ("current", None),
            off["text"]: ("current", None),
        }


@in_event_loop
async def test_the_parts_of_a_plan_are_found_in_chinese(file_place: Place, server: ProviderServer) -> None:
    trip, hotel, work = "用户计划2026年6月去云南。", "用户订了云南的民宿。", "用户6月去上海出差。"
    async with opened(file_place, server, infers_after=0) as store:
        said = [
            memory(trip, "六月去云南", kind="event", date="2026-06"),
            memory(hotel, "民宿也订了", kind="event"),
            memory(work, "还去上海出差", kind="event", date="2026-06"),
        ]
        await say(store, server, "六月去云南，民宿也订了，还去上海出差", "2026-05-01", *said)
        off = memory("用户取消了云南之行。", "云南没去成", kind="event", op="end", replaces=[trip])
        await say(store, server, "云南没去成", "2026-05-20", off)
        after = await states(store)
        assert (after[hotel], after[work]) == (("doubtful", REASON), ("current", None))
