"""Only messages of the user are evidence of facts about the user: no tools, no other participants."""

from typing import Any

import pytest

from recollect.memory.conversation import read_messages
from recollect.memory.extraction.candidates import to_candidates
from recollect.memory.extraction.prompt import extraction_prompt, has_user_message
from recollect.memory.extraction.responses import Draft
from recollect.memory.pipeline.grounding import ground
from recollect.memory.pipeline.stages import Excerpt
from recollect.memory.times import now
from recollect.testing.contract import in_event_loop

from ..databases import Place


@in_event_loop
async def test_what_others_and_tools_say_is_not_learned_about_the_user(file_place: Place) -> None:
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "I live in Lisbon."},
        {"role": "user", "name": "Maria", "content": "I live in Oslo and I am allergic to peanuts."},
        {"role": "tool", "name": "profile", "content": "I am a dentist. I live in Rome."},
        {"role": "user", "name": "Ada", "content": "I have a cat named Pixel."},
    ]
    async with file_place.open(workers=1) as store:
        await store.record_conversation("agent", "ada", said)
        await store.drain(60)
        told = " ".join(entry.text for entry in await store.list_entries("agent", "ada"))
    assert "Lisbon" in told
    assert "Pixel" in told
    assert not {word for word in ("Oslo", "peanuts", "dentist", "Rome") if word in told}


@in_event_loop
async def test_a_single_name_is_the_display_name_of_the_user(shared_place: Place) -> None:
    said: list[dict[str, Any]] = [
        {"role": "user", "name": "Ada Lovelace", "content": "I live in Lisbon."},
        {"role": "assistant", "name": "Bot", "content": "Noted."},
        {"role": "user", "name": "ada lovelace", "content": "I have a cat named Pixel."},
    ]
    async with shared_place.open(workers=1) as store:
        await store.record_conversation("agent", "u-123", said)
        await store.drain(60)
        told = " ".join(entry.text for entry in await store.list_entries("agent", "u-123"))
    assert "Lisbon" in told
    assert "Pixel" in told


@in_event_loop
async def test_several_names_are_several_people_in_the_whole_conversation(shared_place: Place) -> None:
    """The second run reads too few messages to see the first speaker."""
    async with shared_place.open(workers=1) as store:
        first = {"role": "user", "name": "ada", "content": "I live in Lisbon."}
        conversation = await store.record_conversation("agent", "ada", [first])
        await store.drain(60)
        more = [{"role": "assistant", "content": f"Step {number}."} for number in range(20)]
        await store.append_messages(conversation.conversation_id, more)
        await store.drain(60)
        other = {"role": "user", "name": "Maria", "content": "I live in Oslo."}
        await store.append_messages(conversation.conversation_id, [other])
        await store.drain(60)
        told = " ".join(entry.text for entry in await store.list_entries("agent", "ada"))
    assert "Lisbon" in told
    assert "Oslo" not in told


def excerpt_of(*said: tuple[str, str | None, str]) -> Excerpt:
    given = [
        {"role": role, "name": name, "content": text, "message_id": f"id-{place}"}
        for place, (role, name, text) in enumerate(said, 1)
    ]
    return Excerpt("agent", "ada", read_messages(given, now()))


ROUND = excerpt_of(
    ("user", None, "Do we have peanuts at home?"),
    ("user", "Maria", "I am allergic to peanuts."),
    ("tool", "diary", "Allergic to peanuts."),
    ("assistant", None, "Are you allergic to peanuts?"),
)


@pytest.mark.parametrize(
    ("quote", "reason"),
    [
        ("I am allergic to peanuts", "not_said_by_the_user"),
        ("Allergic to peanuts.", "not_said_by_the_user"),
        ("Do we have peanuts at home", "question"),
    ],
)
def test_a_draft_that_rests_on_others_alone_is_no_candidate(quote: str, reason: str) -> None:
    draft = Draft("profile", "The user is allergic to peanuts.", (0,), quote)
    found = ground(to_candidates([draft], ROUND), ROUND)
    assert (found.candidates, found.dropped) == ((), {reason: 1})


def test_a_model_reads_who_is_who() -> None:
    text = extraction_prompt(ROUND, 10_000).request.text
    assert "\nparticipant Maria: I am allergic" in text
    assert "\ntool diary: Allergic" in text
    assert "\nm1 user: Do we" in text


def test_a_conversation_of_others_alone_is_not_given_to_a_model() -> None:
    assert has_user_message(ROUND)
    assert not has_user_message(excerpt_of(("user", "Maria", "I sail."), ("tool", None, "I row.")))
    assert has_user_message(excerpt_of(("user", "ADA", "I sail.")))
