"""A conversation that is too long for one request: every message is sent once, and its tokens count."""

from itertools import pairwise
from typing import Any

import pytest

from recollect.errors import UnusableAnswerError
from recollect.memory.extraction.prompt import split_excerpt
from recollect.memory.pipeline.stages import Usage
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, RecordedRequest, Reply
from recollect.testing.providers import Usage as Cost

from .kit import (
    MOVED,
    bodies_sent,
    each_provider,
    excerpt,
    extractor_of,
    memory,
    messages,
    quoted_in,
    script_of,
)

LONG = excerpt(
    *[(role, f"{role} fact{n}" + " word" * 600) for n in range(60) for role in ("user", "assistant")],
    before=messages(("user", "Hello.")),
)


def note_each_fact(request: RecordedRequest) -> Reply:
    """A model that returns every message of the user as an entry."""
    said = [each for each in quoted_in(request.body, "messages") if each["role"] == "user"]
    notes = [
        memory(f"The user said {fact}.", f"user {fact}", each["id"])
        for each in said
        for fact in [each["text"].split()[1]]
    ]
    return Reply.json({"memories": [*notes, "The user said a word."]}, usage=Cost(10, 1))


def test_what_fits_is_one_part() -> None:
    assert split_excerpt(MOVED, 24_000) == [MOVED]


def test_every_message_is_in_one_part_after_what_was_said_before() -> None:
    parts = split_excerpt(LONG, 24_000)
    assert len(parts) == 3
    assert [message for part in parts for message in part.messages] == list(LONG.messages)
    for earlier, part in pairwise(parts):
        assert part.before[-20:] == earlier.messages[-20:]


def test_there_is_an_end_to_parts() -> None:
    endless = excerpt(*[("user", f"fact{n} " + "word " * 300) for n in range(2000)])
    assert len(split_excerpt(endless, 24_000)) <= 9


def test_a_part_without_the_user_is_left_out() -> None:
    said = excerpt(("user", "Hi."), *[("assistant", "word " * 1500) for _ in range(400)], ("user", "Bye."))
    parts = split_excerpt(said, 24_000)
    assert parts[0].messages[0].content == "Hi."
    assert parts[-1].messages[-1].content == "Bye."
    assert len(parts) == 2


@each_provider
@in_event_loop
async def test_the_answers_to_all_parts_are_one_answer(server: ProviderServer, provider: str) -> None:
    script_of(server, provider).reply_always(note_each_fact)
    async with extractor_of(server, provider) as extractor:
        answer = await extractor.modification(LONG)
    texts = [candidate.text for candidate in answer.value.candidates]
    assert sorted(texts) == sorted([*(f"The user said fact{n}." for n in range(60)), "The user said a word."])
    cited = {each.text: each.evidence for each in answer.value.candidates}
    assert cited["The user said fact59."] == ("id-119",), "numbers are of a part, and ids of the conversation"
    assert answer.usage == Usage(30, 3)
    assert answer.data["requests"] == 3
    assert len(answer.raw_response.splitlines()) == 3
    seen: list[Any] = [
        each["text"]
        for body in bodies_sent(server, provider)
        for each in quoted_in(body, "messages")
        if each["role"] == "user"
    ]
    assert seen == [message.content for message in LONG.messages if message.role == "user"]


@each_provider
@in_event_loop
async def test_a_part_without_an_answer_is_an_error_that_tells_what_all_have_cost(
    server: ProviderServer, provider: str
) -> None:
    script_of(server, provider).reply(note_each_fact, Reply("prose", usage=Cost(5, 2)))
    async with extractor_of(server, provider) as extractor:
        with pytest.raises(UnusableAnswerError) as caught:
            await extractor.modification(LONG)
    assert (caught.value.prompt_tokens, caught.value.completion_tokens) == (15, 3)
    assert caught.value.raw_response == "prose"
    assert len(server.requests()) == 2
