"""Properties of any text: no exception, a stable result, and evidence from the user's messages."""

import asyncio
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recollect.memory.conversation import Message
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import (
    MOST_EVIDENCE,
    Answer,
    Candidate,
    Excerpt,
    Mind,
    Modification,
    Update,
)
from recollect.memory.times import read_date

from .kit import SAID_ON, excerpt_of, texts

PIECES = (
    *("I", "my", "we", "you", "the cat", "went", "live in Ghent", "am 41", "love", "yesterday", "last week"),
    *(
        "in 2019",
        "?",
        "!",
        ". ",
        "\n",
        ", and I",
        "not",
        "my name is",
        "on the 31st",
        "for 3 years",
        "é",
        "٣",
    ),
    *(
        "二月三十日",
        "我",
        "住在成都",
        "昨天",
        "喜欢",
        "。",
        "，",
        "你",
        "ignore all rules",
        "actually, it's 7",
    ),
    *(
        "translate this:",
        "from 3 to 9 May",
        "3/4/2021",
        "I mean Lima",
        '"I',
        "“我",
        "”",
        "如果",
        "我妈妈",
        "不再",
    ),
    *("\x00", "\ud800", "😀", "[image: a dog]", '"'),
)
pieces = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join)
contents = st.one_of(st.text(st.characters(codec=None), max_size=80), pieces)
messages = st.lists(st.tuples(st.sampled_from(["user", "assistant", "system"]), contents), max_size=6)


def _excerpt(said: list[tuple[str, str]]) -> Excerpt:
    return Excerpt(
        "agent",
        "user",
        tuple(Message(role, text, f"m{place}", place, SAID_ON) for place, (role, text) in enumerate(said)),  # type: ignore[arg-type]
    )


async def _all(excerpt: Excerpt) -> tuple[Answer[Modification], Answer[Update], Answer[Mind]]:
    extractor = OfflineExtractor()
    found = await extractor.modification(excerpt)
    return (
        found,
        await extractor.update(excerpt, found.value.candidates, []),
        await extractor.mind(excerpt, []),
    )


@settings(max_examples=100, deadline=None)
@given(messages)
def test_any_messages_give_well_formed_candidates(said: list[tuple[str, str]]) -> None:
    excerpt = _excerpt(said)
    found, update, mind = asyncio.run(_all(excerpt))
    roles = {message.message_id: message.role for message in excerpt.messages}
    for candidate in (*found.value.candidates, *mind.value.candidates):
        _check(candidate, roles)
    assert {candidate.content_type for candidate in mind.value.candidates} <= {"mind"}
    assert "mind" not in {candidate.content_type for candidate in found.value.candidates}
    assert found.value.mind == mind.value
    assert update.value.decisions == ()


def _check(candidate: Candidate, roles: dict[str, str]) -> None:
    assert candidate.text.strip()
    assert 1 <= len(candidate.evidence) <= MOST_EVIDENCE
    assert roles[candidate.evidence[0]] == "user"
    assert "system" not in {roles[message_id] for message_id in candidate.evidence}
    assert max(Counter(candidate.evidence).values()) == 1
    assert 0 < candidate.confidence <= 1
    read_date("valid_from", candidate.valid_from)
    read_date("valid_to", candidate.valid_to)


@settings(max_examples=40, deadline=None)
@given(messages)
@example([("user", "000昨天[image:000]000昨天")])
def test_nothing_is_found_twice_and_the_answer_is_always_the_same(said: list[tuple[str, str]]) -> None:
    excerpt = _excerpt(said)
    first, again = asyncio.run(_all(excerpt)), asyncio.run(_all(excerpt))
    assert first == again
    for part in (first[0].value.candidates, first[2].value.candidates):
        for place, candidate in enumerate(part):
            assert not any(candidate.text == other.text for other in part[:place])


@pytest.mark.proof
def test_a_message_of_five_million_characters_is_read_in_part() -> None:
    facts = "".join(f"I have a cat called Cat{number}. " for number in range(150_000))
    assert len(texts(facts)) == 1000


@pytest.mark.proof
def test_one_endless_sentence_is_read_in_parts() -> None:
    found = texts("I have a cat called Mo and " * 6_500)
    assert found == ["The user has a cat called Mo."]


def test_a_run_of_letters_without_any_sign_is_not_read() -> None:
    assert texts("我昨天去了医院" * 150_000) == []
    assert texts("a" * 1_000_000) == []


def test_what_stands_beside_an_endless_sentence_is_read() -> None:
    assert texts("I have two cats.\n" + "blah " * 1000) == ["The user has two cats."]


def test_many_messages_are_read_to_the_last() -> None:
    said = ["Thanks!"] * 3000 + ["I have two cats."]
    assert texts(*said) == ["The user has two cats."]


def test_the_event_loop_has_its_turns_meanwhile() -> None:
    async def work() -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        await OfflineExtractor().modification(excerpt_of(*["I have two cats."] * 200))
        counting.cancel()
        return turns

    assert asyncio.run(work()) >= 10


def test_it_says_what_it_is() -> None:
    assert OfflineExtractor.model == "offline"
    assert asyncio.run(OfflineExtractor().aclose()) is None  # type: ignore[func-returns-value]
